"""Messages and parts: how they are shown."""

from __future__ import annotations

import pytest

from mmprompt import MediaPart, MediaRef, Message, PromptError, TextPart, load_task
from mmprompt.messages import part_of

PICTURE = MediaPart("image", "image/png", b"\x89" * 5_000_000, origin="cat.png")
CLIP = MediaPart("video", "video/jpeg", b"", frames=(bytes(7), bytes(5)), origin="clip.mp4")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (PICTURE, "MediaPart(image/png, 5,000,000 bytes, 'cat.png')"),
        (CLIP, "MediaPart(video/jpeg, 12 bytes, 2 frames, 'clip.mp4')"),
        (TextPart("What is this?"), "TextPart('What is this?')"),
        (MediaRef("audio", "a.wav"), "MediaRef(audio, 'a.wav')"),
        (MediaRef("image", b"12345"), "MediaRef(image, 5 bytes)"),
        (
            Message("user", [TextPart("Hi"), MediaRef("image", "a.png")]),
            "Message(user: TextPart('Hi'), MediaRef(image, 'a.png'))",
        ),
    ],
)
def test_the_repr_of_parts_and_messages_is_short(value: object, shown: str) -> None:
    assert repr(value) == shown


def test_the_repr_of_long_values_and_many_parts_is_some_hundred_characters() -> None:
    long = [TextPart("x" * 1_000_000), MediaRef("image", "A" * 1_000_000), PICTURE, CLIP]
    assert all(len(repr(part)) < 200 for part in long)
    assert len(repr(Message("user", long * 1000))) < 1500
    [request] = load_task(
        {"dataset": {"rows": [{"id": "r" * 9999, "image": "iVBORw0KGgo" + "A" * 99999, "question": "q"}]}}
    ).requests()
    assert len(repr(request)) < 300


@pytest.mark.parametrize(
    ("written", "part"),
    [
        ({"type": "text", "text": "q", "image_url": None, "image": None}, TextPart("q")),
        (
            {"type": "image_url", "text": None, "image_url": {"url": "a.jpg", "detail": None}},
            MediaRef("image", "a.jpg"),
        ),
        ({"type": "image", "image": None, "url": "a.jpg", "text": None}, MediaRef("image", "a.jpg", "image")),
        ({"type": "audio_url", "audio_url": {"data": "AAAA", "url": None}}, MediaRef("audio", "AAAA")),
    ],
)
def test_a_null_key_of_a_part_is_a_missing_key(written: dict[str, object], part: object) -> None:
    assert part_of(written) == part


def test_a_medium_whose_source_is_null_is_refused() -> None:
    with pytest.raises(PromptError, match="a content part of type 'image_url' names no source"):
        part_of({"type": "image_url", "image_url": {"url": None}})
