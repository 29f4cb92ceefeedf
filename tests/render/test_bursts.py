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
from mmprompt.errors import DatasetError, MMPromptError
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


@pytest.mark.parametrize("missing", range(20, 38))
def test_rows_after_the_one_that_ends_a_run_are_not_counted(folder: Path, missing: int) -> None:
    lines = [line(number, note=f"n {number}") for number in range(60)]
    lines[missing] = lines[missing].replace("a.jpg", "gone.jpg")
    file = folder / "rows.jsonl"
    file.write_text("".join(lines))
    counted = []
    for planned in (True, False):
        task = dataset_task(file)
        renderer = Renderer(task, planned=planned)
        rows = task.samples(renderer.at_once if planned else None)
        with pytest.raises(MMPromptError, match="gone"):
            render(renderer, rows, ChunkWriter(io.BytesIO()), strict=True)
        counted.append([str(note) for note in task.notes()])
    assert counted[0] == counted[1]
    assert str(missing + 1) in counted[0][0]


def test_requests_whose_only_value_is_a_picture_are_made(folder: Path) -> None:
    file = folder / "rows.jsonl"
    rows = [
        {"id": f"r{n}", "content": "<AIS_IMAGE_START>a.jpg<AIS_CONTENT_TAG>", "answer": f"a {n}"} for n in range(12)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    bodies = [request.body() for request in dataset_task(file).requests()]
    assert len(bodies) == 12
    assert len(set(bodies)) == 1
    assert render_all(file).count(b"\n") == 12


def test_a_file_of_another_kind_than_those_before_is_read_no_more_often_from_then_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(MEDIA / "sign.png", folder / "b.jpg")
    lines = [line(number).replace("a.jpg", "b.jpg") if number in (20, 60) else line(number) for number in range(100)]
    file = folder / "rows.jsonl"
    file.write_text("".join(lines))
    read = []
    real = os.read
    monkeypatch.setattr(os, "read", lambda *args: read.append(args) or real(*args))
    render_all(file)
    assert len(read) <= 100 + 1 + 20  # the file that is odd, and what goes the long way while plans are made


def render_all(file: Path) -> bytes:
    sink = io.BytesIO()
    task = dataset_task(file)
    renderer = Renderer(task)
    with ChunkWriter(sink) as writer:
        render(renderer, task.samples(renderer.at_once), writer)
    return sink.getvalue()
