"""Messages to Gemini's form."""

from __future__ import annotations

import base64
from itertools import pairwise

import pytest
from hypothesis import given, settings
from sample_messages import FLAC, FRAMES, GIF, JPEG, MESSAGES, MP3, MP4, WAV, user

from mmprompt.errors import TargetError
from mmprompt.messages import MediaPart, MediaRef, Message, TextPart
from mmprompt.targets.gemini import GeminiWriter, to_gemini


def part_of(part: object) -> object:
    [found] = to_gemini(user(part))["contents"][0]["parts"]
    return found


def inline(media_type: str, data: bytes) -> dict[str, object]:
    return {"inline_data": {"mime_type": media_type, "data": base64.b64encode(data).decode()}}


def call(call_id: str | None, name: str = "add") -> dict[str, object]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": '{"x": 1}'}}


class TestParts:
    def test_text(self):
        assert to_gemini(user(TextPart("a"), TextPart("b"))) == {
            "contents": [{"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}]
        }

    def test_media_that_was_read(self):
        assert part_of(JPEG) == inline("image/jpeg", JPEG.data)
        assert part_of(WAV) == inline("audio/wav", WAV.data)
        assert part_of(FLAC) == inline("audio/flac", FLAC.data)
        assert part_of(MP4) == inline("video/mp4", MP4.data)

    def test_types_go_by_the_names_of_the_api(self):
        assert part_of(MP3) == inline("audio/mp3", MP3.data)
        assert part_of(MediaPart("video", "video/quicktime", b"x")) == inline("video/mov", b"x")

    def test_frames_are_images(self):
        parts = to_gemini(user(FRAMES, TextPart("x")))["contents"][0]["parts"]
        assert parts == [part_of(JPEG), part_of(JPEG), {"text": "x"}]

    def test_a_gif_is_refused(self):
        with pytest.raises(TargetError, match=r"part 1: gemini takes image as .*not image/gif; .*--fit"):
            to_gemini(user(GIF))

    def test_names(self):
        assert part_of(MediaRef("image", "gs://bucket/a.PNG")) == {
            "file_data": {"file_uri": "gs://bucket/a.PNG", "mime_type": "image/png"}
        }
        assert part_of(MediaRef("audio", "https://h.org/a.mp3?key=1.png")) == {
            "file_data": {"file_uri": "https://h.org/a.mp3?key=1.png", "mime_type": "audio/mp3"}
        }

    def test_a_video_named_mp4_goes_with_its_type(self):
        part = part_of(MediaRef("video", "https://h.org/a.mp4"))
        assert part == {"file_data": {"file_uri": "https://h.org/a.mp4", "mime_type": "video/mp4"}}

    def test_a_name_whose_suffix_says_nothing_of_its_modality_goes_without_a_type(self):
        for url in ("https://h.org/watch?v=1", "https://h.org/a.png"):
            assert part_of(MediaRef("video", url)) == {"file_data": {"file_uri": url}}
        typed = MediaRef("video", "https://h.org/watch", options=(("mime_type", "video/mp4"),))
        assert part_of(typed) == {"file_data": {"file_uri": "https://h.org/watch", "mime_type": "video/mp4"}}

    def test_a_type_beside_media_that_was_read_does_not_take_the_place_of_the_real_one(self):
        assert part_of(JPEG._replace(options=(("mime_type", "image/png"),))) == part_of(JPEG)

    @pytest.mark.parametrize("url", ["http://h.org/a.jpg", "s3://b/a.jpg"])
    def test_other_names_are_refused(self, url):
        with pytest.raises(TargetError, match="gemini takes names with gs, https"):
            to_gemini(user(MediaRef("image", url)))
        with pytest.raises(TargetError, match="is not a URL, and gemini takes names with gs, https"):
            to_gemini(user(MediaRef("image", "a.jpg", name="a.jpg")))

    def test_keys_of_a_part(self):
        clip = MP4._replace(extra=(("video_metadata", {"fps": 2.0}),), options=(("detail", "low"),))
        assert part_of(clip) == {**part_of(MP4), "video_metadata": {"fps": 2.0}}
        assert part_of(TextPart("a", (("cache_control", {"type": "ephemeral"}),))) == {"text": "a"}
        with pytest.raises(TargetError, match="gemini does not accept the key 'fps' in this part"):
            to_gemini(user(MP4._replace(extra=(("fps", 2),))))


class TestTurns:
    def test_roles_and_the_system_instruction(self):
        messages = [Message("SYSTEM", "s"), Message("SYSTEM", "t"), Message("HUMAN", "a"), Message("BOT", "b")]
        assert to_gemini(messages) == {
            "contents": [{"role": "user", "parts": [{"text": "a"}]}, {"role": "model", "parts": [{"text": "b"}]}],
            "system_instruction": {"parts": [{"text": "s"}, {"text": "t"}]},
        }

    def test_neighbours_of_one_role_become_one_content(self):
        out = to_gemini([Message("HUMAN", "a"), Message("HUMAN", [JPEG])])["contents"]
        assert out == [{"role": "user", "parts": [{"text": "a"}, part_of(JPEG)]}]

    def test_a_later_system_message_has_no_place(self):
        with pytest.raises(TargetError, match="message 2: gemini takes system messages before all others only"):
            to_gemini([Message("HUMAN", "a"), Message("SYSTEM", "s")])

    def test_empty_messages_are_refused(self):
        for messages in ([Message("HUMAN", "a"), Message("BOT")], [Message("HUMAN")]):
            with pytest.raises(TargetError, match=r"^message \d: gemini takes no message without content"):
                to_gemini(messages)
        with pytest.raises(TargetError, match="no request without a message"):
            to_gemini([])


class TestTools:
    def test_calls_and_their_results(self):
        messages = [
            Message("HUMAN", "1+1?"),
            Message("BOT", tool_calls=[call("c1"), call(None, "mul")]),
            Message("tool", "2", tool_call_id="c1"),
            Message("tool", [TextPart("a"), TextPart("b")], name="mul"),
            Message("tool", name="mul"),
        ]
        assert to_gemini(messages)["contents"][1:] == [
            {"role": "model", "parts": [
                {"function_call": {"id": "c1", "name": "add", "args": {"x": 1}}},
                {"function_call": {"name": "mul", "args": {"x": 1}}},
            ]},
            {"role": "user", "parts": [
                {"function_response": {"id": "c1", "name": "add", "response": {"output": "2"}}},
                {"function_response": {"name": "mul", "response": {"output": ["a", "b"]}}},
                {"function_response": {"name": "mul", "response": {"output": ""}}},
            ]},
        ]  # fmt: skip

    def test_a_result_names_its_function_and_is_text(self):
        with pytest.raises(TargetError, match="message 1: a tool result names no function"):
            to_gemini([Message("tool", "2", tool_call_id="c1")])
        with pytest.raises(TargetError, match="message 1: gemini takes the result of a function as text"):
            to_gemini([Message("tool", [JPEG], name="add")])


class TestRequests:
    def test_payloads_are_left_to_the_caller(self):
        writer = GeminiWriter("gemini", payload=lambda prefix, part: (prefix, part))
        [made] = writer.write(user(JPEG))["contents"][0]["parts"]
        assert made["inline_data"]["data"] == ("", JPEG)

    def test_too_many_bytes(self):
        writer = GeminiWriter("gemini", payload=lambda prefix, part: "")
        with pytest.raises(TargetError, match="106666668 bytes, gemini takes requests of 104857600"):
            writer.write(user(MP4._replace(data=bytes(80_000_000))))

    @given(MESSAGES)
    @settings(deadline=None)
    def test_any_messages_are_written_or_refused(self, messages):
        try:
            request = GeminiWriter("gemini", payload=lambda prefix, part: "x").write(messages)
        except TargetError:
            return
        roles = [content["role"] for content in request["contents"]]
        assert set(roles) <= {"user", "model"}
        assert all(one != other for one, other in pairwise(roles))
        assert all(content["parts"] for content in request["contents"])
