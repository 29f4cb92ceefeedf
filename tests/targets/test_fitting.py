"""Media changed from Python, as asked and to fit a target."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from mmprompt import (
    MediaPart,
    MediaPolicy,
    MediaRef,
    Message,
    SourceError,
    TargetError,
    TaskError,
    change_messages,
    read_messages,
    to_openai,
)


def test_media_are_changed_from_python_too(tour: Path) -> None:
    message = Message("HUMAN", [MediaRef("image", "media/coffee.jpg"), MediaRef("video", "media/clip.mp4")])
    read = read_messages([message], MediaPolicy([tour]))
    [changed] = change_messages(read, max_side=64, frames=3)
    picture, film = changed.parts
    assert max(Image.open(io.BytesIO(picture.data)).size) == 64
    assert (film.media_type, len(film.frames)) == ("video/jpeg", 3)
    assert read[0].parts[0].changes == ()
    assert change_messages(read) == read
    with pytest.raises(TaskError, match="did you mean 'max_side'"):
        change_messages(read, max_sides=3)
    broken = read[0]._replace(parts=(picture, MediaPart("image", "image/jpeg", picture.data[:900])))
    plain: Any = [{"role": "user", "content": "q"}]
    for act in (read_messages, change_messages):
        with pytest.raises(TargetError, match="a message is dict; give a list of Messages; from_openai"):
            act(plain)
    with pytest.raises(SourceError, match=r"^message 2, part 2: "):
        change_messages([read[0], broken], max_side=9)
    [fitted] = change_messages(read, MediaPolicy.preset("hostile"), target="openai", fit=True, frames=2, max_side=64)
    assert to_openai([fitted], "openai")[0]["content"][1]["type"] == "image_url"


@pytest.mark.parametrize("messages", [[{"role": "user", "content": "x"}], Message("HUMAN", "x"), "x"])
def test_what_is_no_message_is_neither_read_nor_changed(messages: Any) -> None:
    for asked in (read_messages, change_messages):
        with pytest.raises(TargetError, match=r"a message is (dict|str); give a list of Messages; from_openai\(…\)"):
            asked(messages)
