"""Folders of media with a metadata file: what the metadata does not list is noted."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

from mmprompt.datasets.read import open_dataset


def folder_of(tmp_path: Path, listed: list[object], *names: str) -> Path:
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    text = "".join(json.dumps(row) + "\n" for row in listed)
    (tmp_path / "metadata.jsonl").write_text(text, encoding="utf-8")
    return tmp_path


def test_media_that_the_metadata_does_not_list_are_noted(tmp_path: Path) -> None:
    listed = [{"file_name": "a.jpg"}, {"left_file_name": "./sub/b.png", "sounds_file_names": ["c.wav", "sub//d.wav"]}]
    unlisted = ["b.png", "sub/a.jpg", "sub/deep/v.mp4", "z.flac"]
    ignored = [".hidden.jpg", ".git/x.jpg", "notes.txt"]
    folder = folder_of(tmp_path, listed, "a.jpg", "sub/b.png", "c.wav", "sub/d.wav", *unlisted, *ignored)
    dataset = open_dataset(folder)
    what = "4 media in the folder are in no row: 'b.png', 'z.flac', 'sub/a.jpg', …"
    for _ in range(2):
        assert len(list(dataset)) == 2
        assert dataset.notes == [f"{folder / 'metadata.jsonl'}: {what}"]
    assert len(list(itertools.islice(dataset, 1))) == 1
    assert dataset.notes == []


def test_one_medium_is_named_and_none_is_no_note(tmp_path: Path) -> None:
    dataset = open_dataset(folder_of(tmp_path, [{"file_name": "a.jpg"}], "a.jpg", "b.jpg"))
    assert len(list(dataset)) == 1
    assert dataset.notes[0].endswith("1 medium in the folder is in no row: 'b.jpg'")
    (tmp_path / "b.jpg").unlink()
    assert len(list(dataset)) == 1
    assert dataset.notes == []
