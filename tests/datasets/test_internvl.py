"""InternVL's meta file: which annotation files it may name, and what its keys do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from mmprompt.datasets.read import open_dataset
from mmprompt.errors import DatasetError


def meta(folder: Path, **sets: dict[str, Any]) -> Path:
    path = folder / "meta.json"
    path.write_text(json.dumps({name: {"root": ".", **entry} for name, entry in sets.items()}), encoding="utf-8")
    return path


def annotations(path: Path, *texts: str) -> Path:
    turns = [[{"from": "human", "value": text}, {"from": "gpt", "value": "a"}] for text in texts]
    path.write_text("".join(json.dumps({"conversations": pair}) + "\n" for pair in turns), encoding="utf-8")
    return path


def asked(path: Path) -> list[str]:
    return [row.messages[0].parts[0].text for row in open_dataset(path)]


@pytest.mark.skipif(os.name == "nt", reason="POSIX")
@pytest.mark.parametrize("kind", ["fifo", "link to fifo", "device", "directory"])
def test_an_annotation_that_is_no_regular_file_is_an_error_at_once(kind: str, tmp_path: Path) -> None:
    named = tmp_path / "rows.jsonl"
    if kind == "directory":
        named.mkdir()
    elif kind == "device":
        named.symlink_to("/dev/zero")
    else:
        os.mkfifo(tmp_path / "fifo" if kind == "link to fifo" else named)
        if kind == "link to fifo":
            named.symlink_to("fifo")
    words = [sys.executable, "-m", "mmprompt", "render", str(meta(tmp_path, one={"annotation": "rows.jsonl"}))]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert "the annotation file 'rows.jsonl'" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="POSIX")
def test_a_link_that_is_exchanged_while_it_is_read_never_leads_outside(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    annotations(own / "inside.jsonl", "inside")
    outside = annotations(tmp_path / "outside.jsonl", "outside")
    path, link, other = meta(own, one={"annotation": "link.jsonl"}), own / "link.jsonl", own / "other"
    link.symlink_to("inside.jsonl")
    ended = threading.Event()

    def exchange() -> None:
        while not ended.is_set():
            for target in (outside, "inside.jsonl"):
                other.symlink_to(target)
                other.replace(link)

    thread = threading.Thread(target=exchange)
    thread.start()
    read = refused = 0
    try:
        for attempt in range(30_000):
            if attempt >= 1000 and read and refused:
                break
            try:
                assert asked(path) == ["inside"]
                read += 1
            except DatasetError as error:
                assert "does not lie below" in error.what
                refused += 1
    finally:
        ended.set()
        thread.join()
    assert (read > 0, refused > 0) == (True, True)


@pytest.mark.parametrize(
    ("times", "texts"),
    [(1, "abcde"), (2, "abcdeabcde"), (2.0, "abcdeabcde"), (0.5, "ab"), (0.1, ""), (0, ""), (None, "abcde")],
)
def test_repeat_time_repeats_a_set_or_takes_its_first_share(times: object, texts: str, tmp_path: Path) -> None:
    annotations(tmp_path / "a.jsonl", *"abcde")
    annotations(tmp_path / "z.jsonl", "z")
    path = meta(tmp_path, a={"annotation": "a.jsonl", "repeat_time": times}, z={"annotation": "z.jsonl"})
    dataset = open_dataset(path)
    rows = list(dataset)
    assert "".join(row.messages[0].parts[0].text for row in rows) == texts + "z"
    assert [row.row for row in rows] == [row.id for row in rows] == list(range(len(rows)))
    assert (len(dataset.notes) == 1) == (texts != "abcde")


def test_a_repeated_row_has_an_id_of_its_own(tmp_path: Path) -> None:
    turns = [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]
    (tmp_path / "a.json").write_text(
        json.dumps([{"id": 7, "conversations": turns}, {"id": "x", "conversations": turns}])
    )
    dataset = open_dataset(meta(tmp_path, a={"annotation": "a.json", "repeat_time": 3}))
    assert [row.id for row in dataset] == [7, "x", "7#2", "x#2", "7#3", "x#3"]
    assert "repeat_time is 3: its rows come 3 times, the second time with ids such as 7#2" in dataset.notes[0]


@pytest.mark.parametrize("times", [1.5, -1, "2", True, float("nan"), 10**6])
def test_a_repeat_time_that_means_nothing_is_an_error(times: object, tmp_path: Path) -> None:
    annotations(tmp_path / "a.jsonl", "a")
    with pytest.raises(DatasetError, match="repeat_time is") as caught:
        list(open_dataset(meta(tmp_path, a={"annotation": "a.jsonl", "repeat_time": times})))
    assert caught.value.where.column == "repeat_time"
