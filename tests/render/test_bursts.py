"""Rows with files are read some at a time: none is lost, none is awaited, and none counts that was not wanted."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from mmprompt import dataset_task
from mmprompt.errors import DatasetError
from mmprompt.media import MediaPolicy
from mmprompt.render.renderer import Renderer
from mmprompt.render.run import render
from mmprompt.targets.chunk_writer import ChunkWriter

MEDIA = Path(__file__).parents[2] / "fixtures" / "tour" / "media"
CONTENT = "<AIS_IMAGE_START>%s<AIS_CONTENT_TAG><AIS_TEXT_START>What is it?<AIS_CONTENT_TAG>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(MEDIA / "coffee.jpg", tmp_path / "a.jpg")
    return tmp_path


def line(number: int, **more: object) -> str:
    return json.dumps({"id": f"r-{number}", "content": CONTENT % "a.jpg", "answer": "x", **more}) + "\n"


def test_the_rows_before_a_damaged_place_are_rendered(folder: Path) -> None:
    packed = gzip.compress("".join(map(line, range(4000))).encode(), mtime=0)
    file = folder / "rows.jsonl.gz"
    file.write_bytes(packed[: len(packed) * 3 // 4])
    counts = []
    for planned in (True, False):
        renderer = Renderer(dataset_task(file), planned=planned)
        sink = io.BytesIO()
        writer = ChunkWriter(sink)
        with pytest.raises(DatasetError, match="cut off"):
            render(renderer, renderer.task.samples(renderer.at_once if planned else None), writer)
        writer.flush()
        counts.append(sink.getvalue().count(b"\n"))
    assert counts[0] == counts[1] > 1000


def test_a_row_of_a_pipe_is_rendered_before_the_next_one_comes(folder: Path) -> None:
    pipe = str(folder / "rows")
    os.mkfifo(pipe)
    rendered = threading.Semaphore(0)
    late = []

    def write() -> None:
        with open(pipe, "w") as file:
            for number in range(60):
                file.write(line(number))
                file.flush()
                if not rendered.acquire(timeout=20):
                    late.append(number)
                    return

    thread = threading.Thread(target=write)
    thread.start()
    task = dataset_task(pipe, format="jsonl", policy=MediaPolicy(roots=[str(folder)]))
    renderer = Renderer(task)
    with open(os.devnull, "wb") as sink:
        report = render(renderer, task.samples(renderer.at_once), ChunkWriter(sink), on_row=rendered.release)
    thread.join()
    assert not late
    assert (report.rendered, report.failed) == (60, 0)


def test_rows_beyond_the_limit_are_not_counted(folder: Path) -> None:
    file = folder / "rows.jsonl"
    file.write_text("".join(line(number, note=f"n {number}") for number in range(40)))
    task = dataset_task(file)
    renderer = Renderer(task)
    with open(os.devnull, "wb") as sink:
        report = render(renderer, task.samples(renderer.at_once), ChunkWriter(sink), limit=21)
    assert report.rendered == 21
    assert "21" in str(task.notes()[0])
