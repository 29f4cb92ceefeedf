"""What a target takes is dated data, and users add their own."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys

import pytest
from PIL import Image
from sample_messages import BMP, FRAMES, GIF, WAV, one, user

from mmprompt.errors import SourceError, TargetError
from mmprompt.media.changes import TargetRoom
from mmprompt.media.image.headers import is_animated
from mmprompt.media.image.reading import image_facts
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.reader import MediaReader
from mmprompt.messages import MediaPart, MediaRef, Message, TextPart
from mmprompt.targets.anthropic import to_anthropic
from mmprompt.targets.limits import check_media, limits, register_target, require_chat_target, target_names, target_room
from mmprompt.targets.openai import to_openai


def test_every_limit_is_dated_and_sourced():
    shipped = {"vllm", "openai", "anthropic", "gemini"}
    assert shipped <= set(target_names())
    for name in shipped:
        known = limits(name)
        for facts in (known, *known.modalities.values()):
            assert facts.date.startswith("20"), name
            assert "https://" in facts.source, name


def test_a_target_of_ones_own():
    register_target("test-own", like="openai", schemes=["https"], formats={"audio": [], "image": ["image/bmp"]})
    register_target("test-own-2", like="test-own", max_bytes={"image": 10}, max_count={"image": 1})
    assert one(user(BMP)[0], "test-own")["image_url"]["url"].startswith("data:image/bmp;base64,")
    with pytest.raises(TargetError, match="test-own takes no audio"):
        to_openai(user(WAV), "test-own")
    with pytest.raises(TargetError, match="78 bytes, test-own-2 takes 10"):
        check_media(BMP, limits("test-own-2"))
    ref = MediaRef("image", "https://h.org/a")
    with pytest.raises(TargetError, match="2 parts of image, test-own-2 takes 1"):
        to_openai([*user(ref, TextPart("x")), *user(ref)], "test-own-2")
    with pytest.raises(TargetError, match="has the scheme http, and test-own takes names with https"):
        to_openai(user(MediaRef("image", "http://h.org/a")), "test-own")


@pytest.mark.parametrize("number", [0, -1, 1.5, True, "3", None])
def test_a_limit_is_a_whole_number(number):
    for limit in ("max_bytes", "max_count", "max_side"):
        with pytest.raises(TargetError, match=f"{limit} of image is .*; give a whole number from 1"):
            register_target("test-odd", **{limit: {"image": number}})
    assert "test-odd" not in target_names()


@pytest.mark.parametrize(
    ("given", "taken"),
    [("image/png", "image/png"), (["image/jpg"], "image/jpeg"), (["IMAGE/PNG"], "image/png")],
)
def test_the_formats_of_a_target_of_ones_own_may_have_any_of_their_names(given, taken):
    register_target("test-named", formats={"image": given})
    assert limits("test-named").modalities["image"].formats == {taken}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"formats": {"image": ["png"]}}, "'png' is not a media type of image; write it as image/FORMAT"),
        ({"formats": {"image": ["audio/wav"]}}, "'audio/wav' is not a media type of image"),
        ({"schemes": ["https://"]}, "'https://' is not a URL scheme; write the part before ://"),
        ({"max_side": {"audio": 9}}, "max_side is given for audio; remove it"),
    ],
)
def test_what_a_target_of_ones_own_can_never_hold_is_refused(given, said):
    with pytest.raises(TargetError, match=re.escape(said)):
        register_target("test-odd", **given)
    assert "test-odd" not in target_names()


@pytest.mark.parametrize("schemes", ["https", ["HTTPS"]])
def test_a_scheme_of_a_target_of_ones_own_may_stand_alone_and_in_capitals(schemes):
    register_target("test-schemes", schemes=schemes)
    assert limits("test-schemes").schemes == {"https"}


def test_a_target_like_another_is_written_in_its_form():
    register_target("test-claude-bmp", like="anthropic", formats={"image": ["image/bmp"]})
    [block] = to_anthropic(user(BMP), "test-claude-bmp")["messages"][0]["content"]
    assert block["source"]["media_type"] == "image/bmp"
    with pytest.raises(TargetError, match="use to_anthropic"):
        to_openai(user(BMP), "test-claude-bmp")


def test_the_room_of_a_target():
    assert target_room("anthropic", "image") == TargetRoom(
        "anthropic",
        frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"}),
        max_bytes=7_864_320,
        max_side=8000,
    )
    assert target_room("openai", "image").still == {"image/gif"}
    register_target("test-small", like="gemini", max_side={"image": 100})
    assert target_room("test-small", "image").max_side == 100
    with pytest.raises(TargetError, match="anthropic takes no audio"):
        target_room("anthropic", "audio")


def test_the_bytes_of_frames_count_too():
    register_target("test-clips", max_bytes={"video": 100})
    with pytest.raises(TargetError, match=r"the video has \d+ bytes, test-clips takes 100"):
        to_openai(user(FRAMES), "test-clips")
    with pytest.raises(TargetError, match="send fewer or smaller frames"):
        to_openai(user(FRAMES), "test-clips")


def test_the_sides_of_frames_are_held_against_those_of_a_video():
    side = max(Image.open(io.BytesIO(FRAMES.frames[0])).size)
    register_target("test-wide", max_side={"video": side})
    register_target("test-narrow", max_side={"video": side - 1})
    assert to_openai(user(FRAMES), "test-wide")
    with pytest.raises(TargetError, match=rf"test-narrow takes {side - 1} a side"):
        to_openai(user(FRAMES), "test-narrow")


def test_how_a_video_is_sent_as_frames_is_told_as_the_target_takes_them():
    for target, how in (("openai", "as images"), ("gemini", "as images"), ("hf", "its frames")):
        with pytest.raises(TargetError, match=rf"; send .*{how}.*: --frames N"):
            check_media(MediaPart("video", "video/ogg", b"x"), limits(target))


def test_what_openai_takes_of_one_request():
    ref = MediaRef("image", "https://h.org/a")
    assert to_openai(user(*[ref] * 1500), "openai")
    with pytest.raises(TargetError, match="1501 parts of image, openai takes 1500"):
        to_openai(user(*[ref] * 1501), "openai")
    assert to_openai(user(*[ref] * 1501), "vllm")


def test_a_shipped_target_stays_what_it_is():
    with pytest.raises(TargetError, match="cannot be registered"):
        register_target("openai")


def test_frames_of_a_gif_are_counted():
    still, moving = io.BytesIO(), io.BytesIO()
    frames = [Image.new("RGB", (9, 9), colour) for colour in ("red", "blue")]
    frames[0].save(still, "GIF")
    frames[0].save(moving, "GIF", save_all=True, append_images=frames[1:])
    assert not is_animated(still.getvalue())
    assert is_animated(moving.getvalue())
    assert is_animated(GIF.data)


def test_check_and_facts_count_the_frames_of_an_odd_gif_alike():
    frames = [Image.new("RGB", (9, 9), colour) for colour in ("red", "blue", "green")]
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:], loop=0)
    whole = buffer.getvalue()
    seconds = [at for at in range(len(whole)) if whole.startswith(b"\x00\x21\xf9\x04", at)]
    odd = whole[: seconds[1] + 1] + b"\x00" + whole[seconds[1] + 1 :]
    assert Image.open(io.BytesIO(odd)).n_frames == 3
    assert image_facts(odd, MediaPolicy()).frames == 3
    assert is_animated(odd)
    for at in range(14, len(whole)):
        for torn in (whole[:at], whole[:at] + b"\x00" + whole[at:]):
            try:
                frames = image_facts(torn, MediaPolicy()).frames
            except SourceError:
                continue
            assert is_animated(torn) == (frames > 1), at


@pytest.mark.parametrize("name", ["PNG", "WEBP"])
@pytest.mark.parametrize("still", [True, False])
def test_check_and_facts_count_the_frames_of_png_and_webp_alike(name, still):
    frames = [Image.new("RGB", (9, 9), colour) for colour in ("red", "blue", "green")]
    options = {"default_image": True} if still and name == "PNG" else {}
    for count in (2, 3) if options else (1, 2, 3):
        buffer = io.BytesIO()
        frames[0].save(buffer, name, save_all=True, append_images=frames[1:count], **options)
        assert is_animated(buffer.getvalue()) == (count > 1), count
        assert image_facts(buffer.getvalue(), MediaPolicy()).frames == count
        for at in range(len(buffer.getvalue())):
            with contextlib.suppress(SourceError):
                is_animated(buffer.getvalue()[:at])


@pytest.mark.parametrize("cut", [0, 5, 13, 14, 400, 800, 810, 900])
def test_a_torn_gif_is_walked_to_its_end(cut):
    assert is_animated(GIF.data[:cut]) in (False, True)


def test_a_scheme_that_a_target_of_ones_own_lists_is_emitted():
    register_target("test-cloud", schemes=["gs", "https"])
    ref = MediaRef("image", "gs://bucket/a.png")
    assert one(user(ref)[0], "test-cloud")["image_url"] == {"url": "gs://bucket/a.png"}


def test_a_heic_goes_where_it_is_taken_and_has_no_decoder_elsewhere():
    reader = MediaReader(MediaPolicy())
    part = reader.read(MediaRef("image", b"\0\0\0\x18ftypheic" + bytes(12)))
    assert check_media(part, limits("gemini"))
    with pytest.raises(TargetError, match=r"not image/heic; convert it to PNG or JPEG$"):
        check_media(part, limits("openai"))
    with pytest.raises(SourceError, match="HEIC, which mmprompt does not read; convert it to PNG or JPEG"):
        image_facts(part.data, reader.policy)


def test_a_picture_with_too_long_a_side_is_refused_without_fit():
    buffer = io.BytesIO()
    Image.new("L", (9000, 2)).save(buffer, "PNG")
    message = Message("HUMAN", [MediaPart("image", "image/png", buffer.getvalue())])
    with pytest.raises(
        TargetError, match=r"9000 x 2 pixels, anthropic takes 8000 a side; shrink it: pass --max-side N or --fit"
    ):
        to_anthropic([message])


def test_the_sides_of_a_picture_are_checked_without_a_decoder(command_environment):
    code = (
        "import sys; from mmprompt.messages import MediaPart; from mmprompt.targets.limits import check_media, limits; "
        "check_media(MediaPart('image', 'image/png', sys.stdin.buffer.read()), limits('anthropic')); "
        "sys.exit('PIL' in sys.modules)"
    )
    buffer = io.BytesIO()
    Image.new("L", (90, 2)).save(buffer, "PNG")
    words = [sys.executable, "-c", code]
    subprocess.run(words, input=buffer.getvalue(), env=command_environment, check=True, timeout=60)


def test_a_form_that_is_not_openais_is_refused_where_it_is_needed():
    assert require_chat_target("vllm", "a batch file").name == "vllm"
    words = "^a batch file needs OpenAI's chat form, and gemini has another; use the target vllm or openai$"
    with pytest.raises(TargetError, match=words):
        require_chat_target("gemini", "a batch file")
    with pytest.raises(TargetError, match="unknown target 'opena'; did you mean 'openai'"):
        require_chat_target("opena", "a batch file")
