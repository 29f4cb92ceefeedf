"""Messages by hand, and the permission that a path written by the caller is."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from mmprompt import MediaPart, MediaPolicy, MediaRef, Message, PolicyError, PromptError, SourceError, TextPart
from mmprompt.run.builders import assistant, audio, image, read_caller_media, system, user, video


def kinds(message: Message) -> list[str]:
    return [part.text if isinstance(part, TextPart) else part.media_type for part in message.parts]  # type: ignore[union-attr]


def test_media_by_keyword_come_before_the_text(tour: Path) -> None:
    built = user(
        "Compare.", image=["media/coffee.jpg", "media/cat.webp"], audio="media/train.wav", video="media/clip.mp4"
    )
    [read] = read_caller_media([built], tour)
    assert kinds(read) == ["image/jpeg", "image/webp", "audio/wav", "video/mp4", "Compare."]
    assert read.parts[0].data == (tour / "media/coffee.jpg").read_bytes()  # type: ignore[union-attr]


def test_tuples_and_globs_are_several_and_a_sound_with_its_rate_is_one(tour: Path) -> None:
    names = ("media/coffee.jpg", "media/cat.webp")
    assert user(image=names) == user(image=list(names))
    assert user(image=iter(names)) == user(image=list(names))
    sound = (np.zeros(800, dtype=np.float32), 8000)
    assert kinds(read_caller_media([user(audio=sound)])[0]) == ["audio/wav"]
    with open(tour / "media/coffee.jpg", "rb") as file:
        assert kinds(read_caller_media([user(image=file)])[0]) == ["image/jpeg"]


@pytest.mark.parametrize("name", ["image", "audio", "video"])
def test_a_list_that_is_empty_is_told(name: str, tmp_path: Path) -> None:
    with pytest.raises(PromptError, match=f"{name}= is empty; name the media, or leave it out"):
        user("?", **{name: tmp_path.glob("*.jpg")})


def test_media_by_position_stand_where_they_are_written(tour: Path) -> None:
    built = user(
        "First", image("media/coffee.jpg", detail="low"), "then", audio("media/train.mp3"), video("media/short.mp4")
    )
    [read] = read_caller_media([built], tour)
    assert kinds(read) == ["First", "image/jpeg", "then", "audio/mpeg", "video/mp4"]
    assert read.parts[1].options == (("detail", "low"),)  # type: ignore[union-attr]


def test_roles() -> None:
    assert [m.role for m in (user("a"), assistant("b"), system("c"))] == ["user", "assistant", "system"]
    assert assistant("b") == Message("BOT", "b")


def test_bytes_pictures_frames_and_urls(tour: Path) -> None:
    data = (tour / "media/coffee.jpg").read_bytes()
    url = "https://example.com/cat.jpg"
    built = user(image=[data, Image.new("RGB", (4, 4)), url])
    [read] = read_caller_media([built])
    assert [type(part) for part in read.parts] == [MediaPart, MediaPart, MediaRef]
    [frames] = read_caller_media([user(video([data, data]))])
    assert frames.parts[0].frames == (data, data)  # type: ignore[union-attr]


def test_absolute_paths_and_path_objects(tour: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tour / "media" / "coffee.jpg"
    for given in (file, str(file), file.as_uri()):
        assert kinds(read_caller_media([user(image=given)])[0]) == ["image/jpeg"]
    monkeypatch.chdir(tour)
    assert kinds(read_caller_media([user(image="media/../media/coffee.jpg")])[0]) == ["image/jpeg"]


def test_a_path_of_a_sample_is_no_permission_beside_one_of_the_caller(tour: Path) -> None:
    own = image("media/coffee.jpg")
    named = MediaRef("image", str(tour / "media/chelsea.jpg"))
    with pytest.raises(PolicyError):
        read_caller_media([Message("user", [own, named])], tour)
    with pytest.raises(PolicyError):
        read_caller_media([Message("user", [MediaRef("image", "media/chelsea.jpg")])], tour)
    [read] = read_caller_media([Message("user", [own, named])], tour, MediaPolicy([tour]))
    assert kinds(read) == ["image/jpeg", "image/jpeg"]


def test_the_permission_is_for_that_file_alone(tour: Path, tmp_path: Path) -> None:
    (tmp_path / "link.jpg").symlink_to(tour / "media" / "coffee.jpg")
    assert kinds(read_caller_media([user(image="link.jpg")], tmp_path)[0]) == ["image/jpeg"]
    os.mkfifo(tmp_path / "pipe.jpg")
    with pytest.raises(PolicyError, match="is a FIFO"):
        read_caller_media([user(image="pipe.jpg")], tmp_path)


def test_the_permission_is_for_the_files_of_frames_too(tour: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["media/clock.jpg", Path("media/coffee.jpg")]
    [frames] = read_caller_media([user(video([*names, (tour / "media/clock.jpg").read_bytes()]))], tour)[0].parts
    assert frames.frames == tuple((tour / name).read_bytes() for name in (*names, names[0]))
    with pytest.raises(SourceError, match=r"^no such file: 'media/none.jpg'; check the path: it was looked for in "):
        read_caller_media([user(video(["media/clock.jpg", "media/none.jpg"]))], tour)
    with pytest.raises(SourceError, match=r"^'media/train.wav' is WAV, not an image"):
        read_caller_media([user(video=[["media/train.wav"]])], tour)
    with pytest.raises(PolicyError, match="no media root is set"):  # those of a sample stay names
        read_caller_media([Message("HUMAN", [MediaRef("video", ["media/clock.jpg"])])], tour)


def test_what_is_wrong_is_said(tour: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=rf"no such file: 'dog.jpg'; check the path: it was looked for in {tmp_path}"):
        read_caller_media([user(image="dog.jpg")], tmp_path)
    with pytest.raises(SourceError, match=r"it was looked for in .*; write / for the backslashes$"):
        read_caller_media([user(image="media\\coffee.jpg")], tour)
    with pytest.raises(SourceError, match=r"'media/coffee\.jpg' is JPEG, not a sound"):
        read_caller_media([user(audio="media/coffee.jpg")], tour)
    wrong: Any = 3
    with pytest.raises(SourceError):
        user(image=wrong)
    with pytest.raises(PromptError, match="give text, or media as image="):
        user(wrong)
    with pytest.raises(PolicyError, match="max_bytes"):
        read_caller_media([user(image="media/coffee.jpg")], tour, MediaPolicy(max_bytes=100))


def test_built_messages_pickle_with_their_permission(tour: Path) -> None:
    back = pickle.loads(pickle.dumps(user("?", image="media/coffee.jpg")))
    assert kinds(read_caller_media([back], tour)[0]) == ["image/jpeg", "?"]


def test_a_long_path_keeps_its_name(tour: Path, tmp_path: Path) -> None:
    folder = tmp_path / ("a" * 90)
    folder.mkdir()
    (folder / "cup.jpg").write_bytes((tour / "media/coffee.jpg").read_bytes())
    [read] = read_caller_media([user(image="cup.jpg")], folder)
    assert read.parts[0].origin == "cup.jpg"  # type: ignore[union-attr]
    (folder / "no.jpg").write_bytes(b"text")
    with pytest.raises(SourceError, match=r"^'no\.jpg' is "):
        read_caller_media([user(image="no.jpg")], folder)
