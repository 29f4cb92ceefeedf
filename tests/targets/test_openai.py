"""Messages to the chat form and back."""

from __future__ import annotations

import base64
import json
import pathlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmprompt.errors import SourceError, TargetError
from mmprompt.parts import MediaPart, MediaRef, Message, TextPart
from mmprompt.targets.limits import check_media, is_animated, limits, register_target, target_names
from mmprompt.targets.openai import from_openai, to_openai

MEDIA = pathlib.Path(__file__).parents[2] / "fixtures" / "tour" / "media"


def part(name: str, modality: str, media_type: str, **more: object) -> MediaPart:
    return MediaPart(modality, media_type, (MEDIA / name).read_bytes(), **more)


JPEG = part("clock.jpg", "image", "image/jpeg")
PNG = part("depth16.png", "image", "image/png")
WEBP = part("cat.webp", "image", "image/webp")
GIF = part("spinner.gif", "image", "image/gif")
WAV = part("train.wav", "audio", "audio/wav")
MP3 = part("train.mp3", "audio", "audio/mpeg")
FLAC = part("weather.flac", "audio", "audio/flac")
MP4 = part("short.mp4", "video", "video/mp4")
FRAMES = MediaPart("video", "video/jpeg", b"", (JPEG.data, JPEG.data))
BMP = MediaPart("image", "image/bmp", b"BM" + bytes(60))


def uri(media: MediaPart) -> str:
    return f"data:{media.media_type};base64,{base64.b64encode(media.data).decode()}"


def user(*parts: object, **more: object) -> list[Message]:
    return [Message("HUMAN", parts, **more)]


def one(message: Message, target: str = "vllm") -> object:
    [content_part] = to_openai([message], target)[0]["content"]
    return content_part


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
        with pytest.raises(TargetError, match="message 1, part 1: the key 'text' is given twice"):
            to_openai(user(TextPart("a", (("text", "b"),)), TextPart("b")))

    def test_nan_beside_a_part_is_refused(self):
        with pytest.raises(TargetError, match="the number nan"):
            to_openai(user(JPEG._replace(options=(("weight", float("nan")),))))

    def test_unknown_names_come_with_the_nearest(self):
        with pytest.raises(TargetError, match="did you mean 'openai'"):
            to_openai([], "opnai")
        with pytest.raises(TargetError, match="use to_anthropic"):
            to_openai([], "anthropic")
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
        with pytest.raises(TargetError, match="message 2, part 2: openai takes .*--fit"):
            to_openai([Message("SYSTEM", "x"), Message("HUMAN", [TextPart("a"), media])], "openai")

    def test_a_gif_with_one_frame_goes_to_openai(self):
        from PIL import Image

        still = __import__("io").BytesIO()
        Image.new("P", (9, 9)).save(still, "GIF")
        assert not is_animated(still.getvalue())
        assert one(user(GIF._replace(data=still.getvalue()))[0], "openai")["type"] == "image_url"

    @pytest.mark.parametrize("cut", [0, 5, 13, 14, 400, 800, 810, 900])
    def test_a_torn_gif_is_walked_to_its_end(self, cut):
        assert is_animated(GIF.data[:cut]) in (False, True)

    def test_frames_are_one_video_for_vllm(self):
        frame = base64.b64encode(JPEG.data).decode()
        assert one(user(FRAMES)[0])["video_url"]["url"] == f"data:video/jpeg;base64,{frame},{frame}"

    def test_frames_are_images_for_openai_and_a_video_is_refused(self):
        content = to_openai(user(FRAMES, TextPart("x")), "openai")[0]["content"]
        assert content == [one(user(JPEG)[0]), one(user(JPEG)[0]), {"type": "text", "text": "x"}]
        with pytest.raises(TargetError, match="part 1: openai takes no video; .*--frames"):
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
        with pytest.raises(TargetError, match="openai takes no name like 'file:///data/a.jpg'; it takes data, http, https"):
            to_openai(user(MediaRef("image", "a.jpg", name="file:///data/a.jpg")), "openai")

    @pytest.mark.parametrize("source", ["a.jpg", "file:///etc/passwd", "gs://b/c.png", uri(JPEG), b"bytes", {"path": "a"}])
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


class TestTargets:
    def test_every_limit_is_dated_and_sourced(self):
        assert {"vllm", "openai"} <= set(target_names())
        for name in target_names():
            known = limits(name)
            for facts in (known, *known.modalities.values()):
                assert facts.date.startswith("20"), name
                assert "https://" in facts.source, name

    def test_a_target_of_ones_own(self):
        register_target("test-own", like="openai", schemes=["https"], formats={"audio": [], "image": ["image/bmp"]})
        register_target("test-own-2", like="test-own", max_bytes={"image": 10}, max_count={"image": 1})
        assert one(user(BMP)[0], "test-own")["image_url"]["url"].startswith("data:image/bmp;base64,")
        with pytest.raises(TargetError, match="test-own takes no audio"):
            to_openai(user(WAV), "test-own")
        with pytest.raises(TargetError, match="62 bytes, test-own-2 takes 10"):
            check_media(BMP, limits("test-own-2"))
        ref = MediaRef("image", "https://h.org/a")
        with pytest.raises(TargetError, match="2 parts of image, test-own-2 takes 1"):
            to_openai([*user(ref, TextPart("x")), *user(ref)], "test-own-2")
        with pytest.raises(TargetError, match="no name like"):
            to_openai(user(MediaRef("image", "http://h.org/a")), "test-own")

    def test_a_shipped_target_stays_what_it_is(self):
        with pytest.raises(TargetError, match="cannot be registered"):
            register_target("openai")


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

    @pytest.mark.parametrize("payload", ["data:image/png;base64,aGVsbG8=", "data:image/png;base64,***", "data:image/png", uri(WAV)])
    def test_a_data_uri_that_is_no_image_is_refused(self, payload):
        with pytest.raises(SourceError, match="message 1, part 1"):
            from_openai([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": payload}}]}])

    @pytest.mark.parametrize(
        ("message", "words"),
        [
            ({"content": "x"}, "message 1 has no role"),
            ({"role": "user", "content": 3}, "message 1: content of type int"),
            ({"role": "user", "content": [{"type": "imageurl"}]}, "part 1: unknown content part type 'imageurl'; did you mean 'image_url'"),
            ({"role": "user", "content": [{"type": "image"}]}, "holds no image"),
            ({"role": "user", "content": [{"type": "text", "text": "a", "image": "b"}]}, "holds 'image' beside 'text'"),
            ({"role": "user", "content": [{"type": "text"}]}, "whose text is of type NoneType"),
            ({"role": "user", "content": [{}]}, "has no type"),
            ({"role": "user", "content": [3]}, "part of type int"),
            ({"role": "user", "contents": "x"}, "unknown key 'contents'; did you mean 'content'"),
            ({"role": "assistant", "content": "x", "audio": {"id": "a"}}, "the key 'audio'"),
            ({"role": "tool", "tool_call_id": 3}, "tool_call_id '3' is no string"),
            ({"role": "assistant", "tool_calls": {"a": 1}}, "tool_calls is no list"),
            ("hello", "not a mapping"),
        ],
    )  # fmt: skip
    def test_what_is_no_message_is_refused(self, message, words):
        with pytest.raises(TargetError, match=words):
            from_openai([message])

    def test_a_reply_as_servers_send_it(self):
        reply = {"role": "assistant", "content": "x", "refusal": None, "annotations": [], "audio": None, "tool_calls": None}
        assert from_openai([reply]) == [Message("BOT", "x")]


NAMES = st.sampled_from(["detail", "max_pixels", "fps", "cache_control", "x"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
PAIRS = st.dictionaries(NAMES, VALUES, max_size=2).map(lambda pairs: tuple(pairs.items()))
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
TEXTS = st.builds(TextPart, TEXT, PAIRS)
URLS = st.builds(
    MediaRef, st.sampled_from(["image", "audio", "video"]),
    st.sampled_from(["https://h.org/a.jpg", "HTTP://h:1/é?x=1&y=2#f"]),
    form=st.just(""), options=PAIRS, extra=PAIRS, name=st.none(),
)  # fmt: skip
MEDIA_PARTS = st.builds(
    lambda media, options, extra, form: media._replace(
        options=options, extra=extra, form=form if media.modality == "audio" else ""
    ),
    st.sampled_from([JPEG, PNG, WEBP, GIF, MP3, WAV, FLAC, MP4, FRAMES]),
    PAIRS,
    PAIRS,
    st.sampled_from(["", "input_audio"]),
)
CALLS = st.lists(st.fixed_dictionaries({"id": TEXT, "function": st.dictionaries(TEXT, VALUES, max_size=2)}), max_size=2)
MESSAGES = st.lists(
    st.builds(
        Message,
        st.sampled_from(["HUMAN", "BOT", "SYSTEM", "tool", "developer", "API"]),
        st.lists(TEXTS | URLS | MEDIA_PARTS, max_size=4),
        st.none() | TEXT,
        CALLS,
        st.none() | TEXT,
    ),
    max_size=4,
)


@settings(max_examples=200, deadline=None)
@given(MESSAGES, st.sampled_from(["auto", "parts"]))
def test_from_openai_is_the_inverse_of_to_openai(messages, content):
    wire = to_openai(messages, content=content)
    assert from_openai(wire) == messages
    assert from_openai(json.loads(json.dumps(wire))) == messages
