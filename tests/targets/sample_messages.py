"""Messages for the tests of targets: real media, and any message."""

from __future__ import annotations

import base64
import io
import pathlib

from hypothesis import strategies as st
from PIL import Image

from mmprompt.messages import MediaPart, MediaRef, Message, TextPart
from mmprompt.targets.openai import to_openai

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


def _bmp() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (4, 2)).save(buffer, "BMP")
    return buffer.getvalue()


BMP = MediaPart("image", "image/bmp", _bmp())


def uri(media: MediaPart) -> str:
    return f"data:{media.media_type};base64,{base64.b64encode(media.data).decode()}"


def user(*parts: object, **more: object) -> list[Message]:
    return [Message("HUMAN", parts, **more)]


def one(message: Message, target: str = "vllm") -> object:
    [content_part] = to_openai([message], target)[0]["content"]
    return content_part


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
