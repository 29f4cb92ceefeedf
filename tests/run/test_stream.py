"""Replies that come in pieces, as server-sent events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mmprompt.run.reply import joined


def stream(*pieces: Any, end: bytes = b"data: [DONE]\n\n") -> bytes:
    return b"".join([b"data: %s\n\n" % json.dumps(piece).encode() for piece in pieces]) + end


def piece(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def test_pieces_become_the_answer_in_one_piece() -> None:
    body = stream(
        piece(role="assistant", content=None),
        piece(role="assistant", content="A "),
        piece(content="猫.", reasoning_content="Whis"),
        piece(reasoning_content="kers"),
        piece("stop"),
        {"choices": [], "usage": {"total_tokens": 9}},
    )
    assert joined(b": a comment\r\n" + body) == {
        "choices": [
            {
                "message": {"role": "assistant", "content": "A 猫.", "reasoning_content": "Whiskers"},
                "finish_reason": "stop",
            }
        ],
        "usage": {"total_tokens": 9},
    }


def test_tool_calls_are_joined_by_their_index() -> None:
    first = {"index": 0, "id": "c0", "type": "function", "function": {"name": "look", "arguments": ""}}
    other = {"index": 1, "id": "c1", "type": "function", "function": {"name": "zoom", "arguments": "{}"}}
    found = joined(
        stream(
            piece(tool_calls=[first]),
            piece(tool_calls=[{"index": 0, "function": {"arguments": '{"x"'}}]),
            piece(tool_calls=[other]),
            piece("tool_calls", tool_calls=[{"index": 0, "function": {"arguments": ": 1}"}}]),
        )
    )
    assert found is not None
    calls = found["choices"][0]["message"]["tool_calls"]
    assert [(call["id"], call["function"]) for call in calls] == [
        ("c0", {"name": "look", "arguments": '{"x": 1}'}),
        ("c1", {"name": "zoom", "arguments": "{}"}),
    ]


def test_only_the_first_choice_is_read() -> None:
    both = {"choices": [{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": "yes"}}]}
    found = joined(stream(both))
    assert found is not None
    assert found["choices"][0]["message"] == {"content": "yes"}


def test_a_stream_that_breaks_off_is_no_answer() -> None:
    assert joined(stream(piece(content="A c"), end=b"")) is None
    assert joined(b"") is None
    assert joined(stream(piece("length", content="A c"), end=b"")) is not None  # some servers send no [DONE]


def test_an_error_in_the_middle_is_the_answer() -> None:
    found = joined(stream(piece(content="A c"), {"error": {"message": "out of memory"}}))
    assert found == {"error": {"message": "out of memory"}}


@pytest.mark.parametrize("data", ["{", "[]", '"text"', '{"choices": 1}', '{"choices": [{"delta": 1}]}', "{}"])
def test_what_holds_no_pieces_is_an_error(data: str) -> None:
    with pytest.raises((ValueError, LookupError, TypeError, AttributeError)):
        joined(f"data: {data}\n\ndata: [DONE]\n\n".encode())


def test_many_pieces_take_a_time_that_grows_with_their_number_alone() -> None:
    found = joined(stream(*[piece(content="word ")] * 50_000))
    assert found is not None
    assert found["choices"][0]["message"]["content"] == "word " * 50_000
