"""Messages and parts: how they are shown."""

from __future__ import annotations

import pytest

from mmprompt import MediaPart, MediaRef, Message, TextPart, load_task

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
