"""Rows that are chats, on the command line: batch files written again, and the closing message taken as the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from closing_line import closing

from mmprompt.cli import main

USER, ASSISTANT = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}
PARAMETERS = {
    "model": "gpt-x",
    "temperature": 0.2,
    "max_completion_tokens": 7,
    "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}},
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
    "metadata": {"big": 12345678901234567890123, "none": None},
    "vendor_key": [1, 2.5, "杯"],
}


def batch_row(name: object, *messages: Any, url: str = "/v1/chat/completions", **parameters: Any) -> dict[str, Any]:
    return {"custom_id": name, "method": "POST", "url": url, "body": {**parameters, "messages": list(messages)}}


@pytest.fixture
def render(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Any:
    """Render rows with options, or a task with them; return the exit code, the lines and what is told."""

    def run(rows: list[Any], *options: str, task: Any = None, name: str = "data.jsonl") -> tuple[int, list[Any], str]:
        data = tmp_path / name
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        data.write_text(json.dumps(rows) if name.endswith(".json") else lines, encoding="utf-8")
        if task is not None:
            (tmp_path / "task.json").write_text(json.dumps({"dataset": name, **task}))
            data = tmp_path / "task.json"
        code = main(["render", str(data), *options])
        out, err = capfd.readouterr()
        return code, [json.loads(line) for line in out.splitlines()], closing(err).told if code < 2 else err

    return run


# ---- batch files


def test_a_batch_file_is_written_again_with_all_its_parameters(render: Any) -> None:
    rows = [
        batch_row("a", USER, **PARAMETERS),
        batch_row("b", {"role": "system", "content": "s"}, USER, url="/v4/chat/completions", model="m"),
    ]
    code, lines, told = render(rows, "--emit", "batch")
    assert (code, lines) == (0, rows)
    assert [line.rpartition(": ")[2] for line in told.splitlines()] == [
        "MM021 an integer over 64 bits, kept exactly (body)"
    ]


def test_the_tasks_settings_fill_in_what_a_batch_line_does_not_say(render: Any) -> None:
    task = {"model": {"model": "task-model", "generation": {"temperature": 1, "seed": 5, "max_tokens": 9}}}
    rows = [batch_row("a", USER, **PARAMETERS), batch_row("b", USER, temperature=0)]
    code, [first, second], _ = render(rows, "--emit", "batch", task=task)
    assert code == 0
    assert first["body"] == {**PARAMETERS, "seed": 5, "messages": [USER]}  # one length
    assert second["body"] == {
        "model": "task-model", "temperature": 0, "seed": 5, "max_tokens": 9, "messages": [USER],
    }  # fmt: skip


def test_the_length_of_a_batch_line_stands_in_place_of_the_inferencers(render: Any) -> None:
    template = {"template": {"round": [{"role": "HUMAN", "prompt": "{custom_id}?"}]}}
    infer = {"prompt_template": template, "inferencer": {"type": "GenInferencer", "max_out_len": 64}}
    rows = [batch_row("a", USER, model="m", max_completion_tokens=3), batch_row("b", USER, model="m")]
    code, [first, second], _ = render(rows, "--emit", "batch", task={"infer_cfg": infer})
    asked = [{"role": "user", "content": "a?"}]
    assert code == 0
    assert first["body"] == {"model": "m", "max_completion_tokens": 3, "messages": asked}
    assert second["body"]["max_tokens"] == 64


def test_a_batch_line_that_nobody_gives_a_model_is_left_out(render: Any) -> None:
    rows = [batch_row("a", USER), batch_row("b", USER, model="m"), batch_row("c", USER)]
    code, lines, told = render(rows, "--emit", "batch")
    assert (code, [line["custom_id"] for line in lines]) == (1, ["b"])
    assert told.count("a batch line needs the name of a model; give model: {model: NAME} in a task file") == 2
    code, lines, told = render([{"question": "q"}], "--emit", "batch")
    assert (code, lines) == (2, [])
    assert "a batch line needs the name of a model" in told


def test_a_row_with_a_body_that_is_no_batch_line_gives_it_to_nobody(render: Any) -> None:
    task = {"model": {"model": "m"}}
    code, [line], _ = render([{"question": "q", "body": {"temperature": 2}, "url": "x"}], "--emit", "batch", task=task)
    assert (code, line["url"], line["body"].keys()) == (0, "/v1/chat/completions", {"model", "messages"})


# ---- the closing message as the answer


@pytest.mark.parametrize("name", ["data.jsonl", "data.json"])
def test_the_closing_assistant_message_is_the_answer(name: str, render: Any) -> None:
    rows = [
        {"id": 1, "messages": [USER, ASSISTANT]},
        {"id": 2, "messages": [USER, ASSISTANT, USER, {"role": "assistant", "content": [{"type": "text", "text": "b"}]}]},
        {"id": 3, "messages": [USER]},
    ]  # fmt: skip
    code, lines, told = render(rows, "--drop-last-assistant", name=name)
    assert (code, told) == (0, "")
    assert lines == [
        {"id": 1, "messages": [USER], "answer": "hello"},
        {"id": 2, "messages": [USER, ASSISTANT, USER], "answer": "b"},
        {"id": 3, "messages": [USER]},
    ]


def test_without_the_option_the_message_is_sent_and_the_note_names_the_option(render: Any) -> None:
    code, [line], told = render([{"id": 1, "messages": [USER, ASSISTANT]}])
    assert (code, line) == (0, {"id": 1, "messages": [USER, ASSISTANT]})
    assert "the last message is the assistant's" in told
    assert "pass --drop-last-assistant" in told


def test_the_answer_goes_to_the_tasks_output_column_and_to_no_batch_line(render: Any) -> None:
    task = {"reader_cfg": {"output_column": "gold"}, "model": {"model": "m"}}
    rows = [batch_row("a", USER, ASSISTANT)]
    assert render(rows, "--drop-last-assistant", task=task)[1] == [{"id": "a", "messages": [USER], "answer": "hello"}]
    code, [line], _ = render(rows, "--drop-last-assistant", "--emit", "batch", task=task)
    assert (code, line["body"]) == (0, {"model": "m", "messages": [USER]})


@pytest.mark.parametrize(
    ("row", "code", "words"),
    [
        ({"messages": [ASSISTANT]}, "MM700", "the only message is the assistant's; add the user's message before it"),
        ({"messages": [USER, ASSISTANT], "answer": "bye"}, "MM710", "the row has another 'answer' than its closing message"),
        (
            {"messages": [USER, {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}]},
            "MM007",
            "the closing assistant message holds more than text",
        ),
    ],
)  # fmt: skip
def test_a_closing_message_that_cannot_be_the_answer_is_the_rows_error(
    row: dict[str, Any], code: str, words: str, render: Any
) -> None:
    found, lines, told = render([{"id": 1, **row}, {"id": 2, "messages": [USER]}], "--drop-last-assistant")
    assert (found, [line["id"] for line in lines]) == (1, [2])
    assert f"data.jsonl:1: {code} {words}" in told
    assert told.splitlines()[0].endswith(" (messages, sample 1)")


def test_an_answer_that_says_the_same_is_no_conflict(render: Any) -> None:
    row = {"id": 1, "messages": [USER, ASSISTANT], "answer": "hello"}
    assert render([row], "--drop-last-assistant")[1] == [{"id": 1, "messages": [USER], "answer": "hello"}]


def test_an_option_that_changes_nothing_is_noted(render: Any) -> None:
    code, _, told = render([{"question": "q"}], "--drop-last-assistant")
    assert (code, told) == (
        0,
        "note: MM701 --drop-last-assistant found no chat whose last message is the assistant's\n",
    )
