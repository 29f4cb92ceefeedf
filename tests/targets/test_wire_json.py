"""Records as bytes: the same JSON, no copies."""

from __future__ import annotations

import json
import pickle
import re
from base64 import b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_messages import CALLS, FRAMES, JPEG, MESSAGES, MP3, TEXT, WAV

from mmprompt.errors import TargetError
from mmprompt.messages import MediaPart, Message, TextPart
from mmprompt.targets.openai import OpenAIWriter, to_openai
from mmprompt.targets.wire_json import Payload, json_body, record_chunks, with_text

HARD = st.sampled_from(["\0", '"\0"', "\\u0000", "𝄞", "\\", "\x7f\u2028", "</script>", "data:image/jpeg;base64,"])


def record(messages: list[Message], **more: object) -> dict[str, object]:
    return {"id": 1, "messages": OpenAIWriter("vllm", payload=Payload).write(messages), **more}


@settings(deadline=None)
@given(MESSAGES, TEXT | HARD, TEXT | HARD)
def test_chunks_are_the_json_of_the_plain_data(messages, text, answer):
    messages = [*messages, Message("HUMAN", [JPEG, TextPart(text), FRAMES])]
    chunks = record_chunks(record(messages, answer=answer))
    assert json.loads(b"".join(chunks)) == {"id": 1, "messages": to_openai(messages), "answer": answer}


@settings(deadline=None)
@given(MESSAGES)
def test_a_body_and_plain_data_hold_the_same(messages):
    request = {
        "model": "m",
        "messages": OpenAIWriter("vllm", payload=Payload).write([*messages, Message("HUMAN", [JPEG, FRAMES])]),
    }
    plain = with_text(request)
    assert plain == {"model": "m", "messages": to_openai([*messages, Message("HUMAN", [JPEG, FRAMES])])}
    assert json.loads(json_body(request)) == json.loads(json_body(plain)) == plain


def test_plain_data_shares_nothing_with_what_was_written():
    written = OpenAIWriter("vllm", payload=Payload).write([Message("HUMAN", [JPEG])])
    with_text(written)[0]["content"][0]["image_url"]["url"] = "changed"
    assert type(written[0]["content"][0]["image_url"]["url"]) is Payload


@given(CALLS, TEXT | HARD)
def test_a_record_without_media_is_one_chunk(calls, text):
    [chunk] = record_chunks(record([Message("BOT", text, tool_calls=calls)]))
    assert json.loads(chunk) == {"id": 1, "messages": to_openai([Message("BOT", text, tool_calls=calls)])}


def test_payloads_are_chunks_of_their_own_in_order():
    chunks = record_chunks(record([Message("HUMAN", [JPEG, WAV._replace(form="input_audio"), FRAMES])]), newline=True)
    lengths = [len(media) for media in (JPEG.data, WAV.data, JPEG.data, JPEG.data)]
    payloads = [chunk for chunk in chunks if len(chunk) > 1000]
    assert [len(payload) for payload in payloads] == [(length + 2) // 3 * 4 for length in lengths]
    assert chunks[0].endswith(b'"image_url":{"url":"data:image/jpeg;base64,')
    assert b"".join(chunks).endswith(b"}\n")
    assert b"".join(chunks).count(b"\n") == 1


@pytest.mark.parametrize(
    "value",
    [2**70, -(2**63) - 1, 2**64, 0.1, 1e300, float("inf"), [2**70, {"a": float("nan")}], True, None, "é", {"k": [1]}],
    ids=repr,
)
@pytest.mark.parametrize("key", ["id", "answer"])
def test_values_come_out_as_python_prints_them(key, value):
    shown = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for messages in ([], [Message("HUMAN", [JPEG])]):
        if key == "id" and ("NaN" in shown or "Infinity" in shown):
            with pytest.raises(TargetError, match="not JSON compliant"):
                record_chunks({**record(messages), key: value})
            continue
        text = b"".join(record_chunks({**record(messages), key: value})).decode()
        assert f'"{key}":{re.sub("NaN|Infinity", lambda m: json.dumps(m[0]), shown)}' in text
        assert json.loads(text)["messages"] == to_openai(messages)


def test_a_huge_integer_inside_a_message_is_exact():
    messages = [Message("HUMAN", [JPEG._replace(options=(("max_pixels", 2**80),)), MP3])]
    assert json.loads(b"".join(record_chunks(record(messages))))["messages"] == to_openai(messages)


def test_a_lone_surrogate_is_refused_with_its_place():
    with pytest.raises(TargetError, match=r"messages\[0\]\.content\[1\]\.text: .*lone surrogate"):
        record_chunks(record([Message("HUMAN", [JPEG, TextPart("a\ud800")])]))
    with pytest.raises(TargetError, match="lone surrogate"):
        record_chunks(record([], answer="\udc00"))


@pytest.mark.parametrize("depth", [300, 5000])
def test_what_is_nested_too_deeply_is_refused(depth):
    value = []
    for _ in range(depth):
        value = [value]
    with pytest.raises(TargetError, match="nested too deeply for JSON; flatten it"):
        record_chunks({"other": value})


@pytest.mark.parametrize("value", [object(), b"bytes", {1, 2}, JPEG.data], ids=lambda value: type(value).__name__)
def test_what_json_cannot_hold_is_refused(value):
    for key in ("answer", "other"):
        with pytest.raises(TargetError, match=f"of type {type(value).__name__}"):
            record_chunks({"id": 1, key: value})


def test_the_record_of_the_caller_stays_as_it_is():
    made = record([Message("HUMAN", [JPEG])], answer=float("nan"))
    before = {**made}
    record_chunks(made)
    assert made["answer"] is before["answer"]
    assert record_chunks(made) == record_chunks(made)


def test_a_media_part_still_pickles_into_the_same_bytes():
    part: MediaPart = pickle.loads(pickle.dumps(JPEG))
    assert record_chunks(record([Message("HUMAN", [part])])) == record_chunks(record([Message("HUMAN", [JPEG])]))


def test_media_that_come_twice_are_encoded_once():
    part = MediaPart("image", "image/jpeg", b"abc" * 100)
    chunks = record_chunks({"a": [Payload("data:", part), Payload("data:", part)]})
    assert len({id(chunk) for chunk in chunks if len(chunk) == 400}) == 1
    url = f"data:{b64encode(part.data).decode()}"
    assert json.loads(b"".join(chunks)) == {"a": [url, url]}
