"""Messages to the chat form."""

from __future__ import annotations

import base64
import io

import pytest
from PIL import Image
from sample_messages import BMP, FLAC, FRAMES, GIF, JPEG, MP3, MP4, WAV, one, uri, user

from mmprompt.errors import SourceError, TargetError
from mmprompt.messages import MediaRef, Message, TextPart
from mmprompt.targets.openai import to_openai


class TestContent:
    def test_one_text_is_a_string(self):
        assert to_openai([Message("HUMAN", "hi")]) == [{"role": "user", "content": "hi"}]

    def test_parts_when_asked(self):
        assert to_openai([Message("HUMAN", "hi")], content="parts") == [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]}
        ]
        assert to_openai([Message("HUMAN")], content="parts") == [{"role": "user", "content": []}]

    def test_several_texts_keep_their_seam(self):
        texts = user(TextPart("a"), TextPart("b"))
        assert to_openai(texts)[0]["content"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]

    def test_a_text_with_extra_keys_is_a_part(self):
        message = Message("user", [TextPart("a", (("cache_control", {"type": "ephemeral"}),))])
        assert one(message) == {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}

    def test_an_empty_message_is_an_empty_string_and_none_beside_tool_calls(self):
        call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        assert to_openai([Message("HUMAN")])[0]["content"] == ""
        assert to_openai([Message("BOT", tool_calls=[call])]) == [
            {"role": "assistant", "content": None, "tool_calls": [call]}
        ]

    def test_names_and_call_ids_are_kept(self):
        assert to_openai([Message("tool", "4", name="add", tool_call_id="c1")]) == [
            {"role": "tool", "content": "4", "name": "add", "tool_call_id": "c1"}
        ]

    def test_what_is_returned_shares_nothing_with_the_message(self):
        call = {"function": {"arguments": "{}"}}
        message = Message("BOT", [TextPart("a", (("cache_control", {"type": "x"}),))], tool_calls=[call])
        wire = to_openai([message])
        wire[0]["tool_calls"][0]["function"]["arguments"] = "changed"
        wire[0]["content"][0]["cache_control"]["type"] = "changed"
        assert call == {"function": {"arguments": "{}"}}
        assert message.parts[0].extra == (("cache_control", {"type": "x"}),)

    def test_a_key_cannot_take_the_place_of_the_text(self):
        with pytest.raises(TargetError, match="message 1, part 1: a content part has the key 'text' twice"):
            to_openai(user(TextPart("a", (("text", "b"),)), TextPart("b")))

    def test_nan_beside_a_part_is_refused(self):
        with pytest.raises(TargetError, match="the number nan"):
            to_openai(user(JPEG._replace(options=(("weight", float("nan")),))))

    def test_unknown_names_come_with_the_nearest(self):
        with pytest.raises(TargetError, match="did you mean 'openai'"):
            to_openai([], "opnai")
        with pytest.raises(TargetError, match="did you mean 'parts'"):
            to_openai([], content="part")


class TestMediaThatWasRead:
    def test_vllm_forms(self):
        assert one(user(JPEG)[0]) == {"type": "image_url", "image_url": {"url": uri(JPEG)}}
        assert one(user(MP3)[0]) == {"type": "audio_url", "audio_url": {"url": uri(MP3)}}
        assert one(user(MP4)[0]) == {"type": "video_url", "video_url": {"url": uri(MP4)}}

    def test_options_stand_beside_the_url_and_extra_in_the_part(self):
        media = JPEG._replace(options=(("detail", "low"),), extra=(("min_pixels", 3),))
        assert one(user(media)[0]) == {
            "type": "image_url",
            "image_url": {"url": uri(JPEG), "detail": "low"},
            "min_pixels": 3,
        }

    def test_input_audio_where_it_is_asked_for(self):
        assert one(user(FLAC._replace(form="input_audio"))[0]) == {
            "type": "input_audio",
            "input_audio": {"data": base64.b64encode(FLAC.data).decode(), "format": "flac"},
        }

    def test_openai_takes_audio_as_input_audio_only(self):
        for media, name in ((WAV, "wav"), (MP3._replace(form="audio_url"), "mp3")):
            assert one(user(media)[0], "openai")["input_audio"]["format"] == name

    @pytest.mark.parametrize("media", [FLAC, BMP, GIF], ids=lambda media: media.media_type)
    def test_what_openai_does_not_take_names_fit(self, media):
        with pytest.raises(TargetError, match=r"message 2, part 2: openai takes .*--fit"):
            to_openai([Message("SYSTEM", "x"), Message("HUMAN", [TextPart("a"), media])], "openai")

    def test_a_gif_with_one_frame_goes_to_openai(self):
        still = io.BytesIO()
        Image.new("P", (9, 9)).save(still, "GIF")
        assert one(user(GIF._replace(data=still.getvalue()))[0], "openai")["type"] == "image_url"

    def test_frames_are_one_video_for_vllm(self):
        frame = base64.b64encode(JPEG.data).decode()
        assert one(user(FRAMES)[0])["video_url"]["url"] == f"data:video/jpeg;base64,{frame},{frame}"

    def test_frames_are_images_for_openai_and_a_video_is_refused(self):
        content = to_openai(user(FRAMES, TextPart("x")), "openai")[0]["content"]
        assert content == [one(user(JPEG)[0]), one(user(JPEG)[0]), {"type": "text", "text": "x"}]
        with pytest.raises(TargetError, match=r"part 1: openai takes no video; .*--frames"):
            to_openai(user(MP4), "openai")


class TestMediaThatWasNamed:
    def test_an_http_url_passes_unread(self):
        ref = MediaRef("image", "https://h.org/a.jpg?k=1", options=(("detail", "high"),))
        assert one(user(ref)[0], "openai")["image_url"] == {"url": "https://h.org/a.jpg?k=1", "detail": "high"}

    def test_a_name_that_the_reader_chose_passes(self):
        assert one(user(MediaRef("image", "a.jpg", name="file:///data/a.jpg"))[0])["image_url"] == {
            "url": "file:///data/a.jpg"
        }
        assert one(user(MediaRef("image", "a.jpg", name="a.jpg"))[0])["image_url"] == {"url": "a.jpg"}

    def test_a_scheme_that_the_target_lacks_is_refused(self):
        for ref in (MediaRef("image", "a.jpg", name="file:///data/a.jpg"), MediaRef("image", "gs://b/c.png")):
            with pytest.raises(TargetError, match=r"part 1: .* has the scheme (file|gs), and openai takes names with"):
                to_openai(user(ref), "openai")

    @pytest.mark.parametrize("source", ["a.jpg", "file:///etc/passwd", uri(JPEG), b"bytes", {"path": "a"}])
    def test_what_nobody_has_read_is_refused(self, source):
        with pytest.raises(TargetError, match=r"message 1, part 1: image .* has not been read; .*read_messages"):
            to_openai(user(MediaRef("image", source)))

    def test_an_error_shows_neither_payload_nor_query(self):
        with pytest.raises(TargetError) as caught:
            to_openai(user(MediaRef("image", uri(JPEG))))
        assert uri(JPEG)[30:60] not in str(caught.value)
        with pytest.raises(TargetError) as caught:
            to_openai(user(MediaRef("audio", "https://h.org/a.wav?key=SECRET")), "openai")
        assert "SECRET" not in str(caught.value)
        assert "input_audio carries bytes" in str(caught.value)

    def test_a_url_that_parsers_read_differently_is_refused(self):
        with pytest.raises(SourceError, match="message 1, part 1"):
            to_openai(user(MediaRef("image", "http://good\\@127.0.0.1/")))
