"""Messages from the chat form and its relatives."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_messages import JPEG, MESSAGES, MP3, MP4, PNG, WAV, uri

from mmprompt.errors import SourceError, TargetError
from mmprompt.messages import MediaRef, Message, TextPart
from mmprompt.targets.openai import from_openai, to_openai


class TestReading:
    @pytest.mark.parametrize(
        ("content", "part"),
        [
            ({"type": "image_url", "image_url": uri(JPEG)}, JPEG),
            ({"type": "image_url", "image_url": {"url": "https://h/a.png"}}, MediaRef("image", "https://h/a.png")),
            ({"type": "input_image", "image_url": "https://h/a", "detail": "low"}, MediaRef("image", "https://h/a", options=(("detail", "low"),))),
            ({"type": "input_text", "text": "x"}, TextPart("x")),
            ({"type": "refusal", "refusal": "no"}, TextPart("no")),
            ({"type": "image", "image": "../a.jpg"}, MediaRef("image", "../a.jpg")),
            ({"type": "image", "url": "file:///a.jpg"}, MediaRef("image", "file:///a.jpg")),
            ({"type": "image", "image": "a.jpg", "text": None, "video": None}, MediaRef("image", "a.jpg")),
            ({"image": "a.jpg"}, MediaRef("image", "a.jpg")),
            ({"type": "audio", "audio": "a.wav", "rate": 3}, MediaRef("audio", "a.wav", extra=(("rate", 3),))),
            ({"type": "video", "video": ["1.jpg", "2.jpg"]}, MediaRef("video", ["1.jpg", "2.jpg"])),
            ({"type": "video_url", "video_url": {"url": uri(MP4)}}, MP4),
            ("bare", TextPart("bare")),
            ({"type": "text", "text": "a", "cache_control": {"type": "e"}}, TextPart("a", (("cache_control", {"type": "e"}),))),
        ],
    )  # fmt: skip
    def test_forms(self, content, part):
        assert from_openai([{"role": "user", "content": [content]}]) == [Message("user", [part])]

    def test_reading_opens_nothing(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "a.jpg").write_bytes(JPEG.data)
        content = [{"type": "image", "image": "a.jpg"}]
        assert from_openai([{"role": "user", "content": content}])[0].parts == (MediaRef("image", "a.jpg"),)

    def test_the_bytes_decide_the_type(self):
        wrong = uri(PNG).replace("image/png", "image/jpeg")
        [message] = from_openai([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": wrong}}]}])
        assert message.parts[0].media_type == "image/png"
        assert message.parts[0].findings == ("declared image/jpeg, bytes are image/png",)
        audio = {"data": base64.b64encode(MP3.data).decode(), "format": "wav"}
        [message] = from_openai([{"role": "user", "content": [{"type": "input_audio", "input_audio": audio}]}])
        assert message.parts[0].media_type == "audio/mpeg"
        assert message.parts[0].findings == ("declared audio/wav, bytes are audio/mpeg",)

    @pytest.mark.parametrize(
        "payload", ["data:image/png;base64,aGVsbG8=", "data:image/png;base64,***", "data:image/png", uri(WAV)]
    )
    def test_a_data_uri_that_is_no_image_is_refused(self, payload):
        with pytest.raises(SourceError, match="message 1, part 1"):
            from_openai([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": payload}}]}])

    @pytest.mark.parametrize(
        ("message", "words"),
        [
            ({"content": "x"}, "^message 1: the message has no role"),
            ({"role": "user", "content": 3}, "^message 1: the content is int"),
            ({"role": "user", "content": [{"type": "imageurl"}]}, "^message 1, part 1: unknown content part type 'imageurl'; did you mean 'image_url'"),
            ({"role": "user", "content": [{"type": "image"}]}, "holds no image"),
            ({"role": "user", "content": [{"type": "text", "text": "a", "image": "b"}]}, "holds 'image' beside 'text'"),
            ({"role": "user", "content": [{"type": "text"}]}, "the text of a part of type text is NoneType"),
            ({"role": "user", "content": [{}]}, "has no type"),
            ({"role": "user", "content": [3]}, "a content part is int"),
            ({"role": "user", "contents": "x"}, "unknown key 'contents'; did you mean 'content'"),
            ({"role": "assistant", "content": "x", "audio": {"id": "a"}}, "the key 'audio'"),
            ({"role": "tool", "tool_call_id": 3}, "tool_call_id is '3'; give a string"),
            ({"role": "assistant", "tool_calls": {"a": 1}}, "tool_calls is dict; give a list"),
            ("hello", "not a mapping"),
            ({"role": "user"}, "^message 1: the message has no content; give text or parts"),
            ({"role": "user", "content": None}, "^message 1: the message has no content"),
        ],
    )  # fmt: skip
    def test_what_is_no_message_is_refused(self, message, words):
        with pytest.raises(TargetError, match=words):
            from_openai([message])

    @pytest.mark.parametrize("messages", [None, 3, {"role": "user", "content": "x"}, "x"])
    def test_what_is_no_list_of_messages_is_refused(self, messages):
        with pytest.raises(TargetError, match=r"^the messages are \w+; give a list of mappings$"):
            from_openai(messages)

    def test_a_message_may_be_called_one_as_in_the_responses_form(self):
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
        assert from_openai([item]) == [Message("user", "hi")]
        with pytest.raises(TargetError, match="unknown key 'type'"):
            from_openai([{**item, "type": "reasoning"}])

    def test_a_reply_as_servers_send_it(self):
        reply = {
            "role": "assistant",
            "content": "x",
            "refusal": None,
            "annotations": [],
            "audio": None,
            "tool_calls": None,
        }
        assert from_openai([reply]) == [Message("BOT", "x")]


@settings(deadline=None)
@given(MESSAGES, st.sampled_from(["auto", "parts"]))
def test_from_openai_is_the_inverse_of_to_openai(messages, content):
    wire = to_openai(messages, content=content)
    assert from_openai(wire) == messages
    assert from_openai(json.loads(json.dumps(wire))) == messages


def test_a_data_uri_with_escaped_base64_is_read_as_the_media_reader_reads_it():
    escaped = uri(JPEG).replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")
    part = {"type": "image_url", "image_url": {"url": escaped.replace("image%2F", "image/")}}
    [message] = from_openai([{"role": "user", "content": [part]}])
    assert (message.parts[0].data, message.parts[0].findings) == (JPEG.data, ("base64 with percent-encoding",))


def test_a_data_uri_with_half_a_surrogate_pair_is_our_error():
    part = {"type": "image_url", "image_url": {"url": "data:image/png,\ud800"}}
    with pytest.raises(SourceError, match="lone surrogate"):
        from_openai([{"role": "user", "content": [part]}])
