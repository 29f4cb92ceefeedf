"""Rows with files are read some at a time: none is lost, none is awaited, and none counts that was not wanted."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from form_rows import lines_of

from mmprompt import dataset_task, load_task
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
    for formed in (True, False):
        renderer = Renderer(dataset_task(file), formed=formed)
        sink = io.BytesIO()
        writer = ChunkWriter(sink)
        with pytest.raises(DatasetError, match="cut off"):
            render(renderer, renderer.task.samples(), writer)
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
        report = render(renderer, task.samples(), ChunkWriter(sink), on_row=rendered.release)
    thread.join()
    assert not late
    assert (report.rendered, report.failed) == (60, 0)


def test_rows_beyond_the_limit_are_not_counted(folder: Path) -> None:
    file = folder / "rows.jsonl"
    file.write_text("".join(line(number, note=f"n {number}") for number in range(40)))
    task = dataset_task(file)
    renderer = Renderer(task)
    with open(os.devnull, "wb") as sink:
        report = render(renderer, task.samples(), ChunkWriter(sink), limit=21)
    assert report.rendered == 21
    assert "21" in str(task.notes()[0])


@pytest.mark.parametrize("missing", range(20, 38))
def test_rows_after_the_one_that_ends_a_run_are_not_counted(folder: Path, missing: int) -> None:
    lines = [line(number, note=f"n {number}") for number in range(60)]
    lines[missing] = lines[missing].replace("a.jpg", "gone.jpg")
    file = folder / "rows.jsonl"
    file.write_text("".join(lines))
    counted = []
    for formed in (True, False):
        task = dataset_task(file)
        renderer = Renderer(task, formed=formed)
        rows = task.samples()
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
    assert len(read) <= 100 + 1 + 20  # the file that is odd, and what is read again while a row is traced


def both_ways(task: Any) -> tuple[bytes, list[str], list[str]]:
    """Return the lines, errors and notes of a task, which are the same with forms and without."""
    one, other = [lines_of(task, "vllm", formed=formed) for formed in (True, False)]
    assert one == other
    return one[:3]


def test_rows_with_and_without_files_stay_in_their_order(folder: Path) -> None:
    shutil.copy(MEDIA / "sign.png", folder / "b.png")
    text = "<AIS_TEXT_START>Which is it?<AIS_CONTENT_TAG>"
    each = ("a.jpg", "a.jpg", "b.png", "a.jpg", "", "a.jpg", "gone.jpg", "", "b.png")
    rows = [{"id": f"r-{n}", "content": CONTENT % each[n % 9] if each[n % 9] else text} for n in range(180)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines, errors, _ = both_ways(dataset_task(folder / "rows.jsonl"))
    assert [json.loads(one)["id"] for one in lines.splitlines()] == [f"r-{n}" for n in range(180) if n % 9 != 6]
    assert len(errors) == 20


@pytest.mark.parametrize("every", [1, 3, 20])
def test_each_file_that_is_of_another_kind_than_its_name_says_is_noted(folder: Path, every: int) -> None:
    shutil.copy(MEDIA / "sign.png", folder / "b.jpg")
    lines = [line(number) if number % every else line(number).replace("a.jpg", "b.jpg") for number in range(100)]
    (folder / "rows.jsonl").write_text("".join(lines))
    _, _, notes = both_ways(dataset_task(folder / "rows.jsonl"))
    assert len(notes) == -(-100 // every)


def test_a_file_beyond_the_bytes_of_a_request_is_refused(folder: Path) -> None:
    (folder / "large.jpg").write_bytes((folder / "a.jpg").read_bytes() + bytes(100_000))
    lines = [line(number) if number % 20 < 15 else line(number).replace("a.jpg", "large.jpg") for number in range(100)]
    (folder / "rows.jsonl").write_text("".join(lines))
    media = {"max_request_bytes": 100_000, "max_bytes": 200_000}
    lines_made, errors, _ = both_ways(load_task({"dataset": str(folder / "rows.jsonl"), "media": media}))
    assert (lines_made.count(b"\n"), len(errors)) == (75, 25)
    assert "max_request_bytes" in errors[0]


def test_what_stands_around_a_file_may_hold_signs_of_percent(folder: Path) -> None:
    picture = {"type": "image_url", "image_url": {"url": "{image}"}, "uuid": "5%b and %s"}
    parts = {"image": picture, "text": {"type": "text", "text": "{question} %b 9%"}}
    begin = [{"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "100%b of %d"}]
    form = {"begin": begin, "round": [{"role": "HUMAN", "prompt_mm": parts}]}
    rows = [{"id": f"%b-{n}", "image": "a.jpg", "question": f"{n}%b"} for n in range(60)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    infer = {"prompt_template": {"type": "MMPromptTemplate", "template": form}}
    lines, errors, _ = both_ways(load_task({"dataset": str(folder / "rows.jsonl"), "infer_cfg": infer}))
    assert (lines.count(b"100%b of %d"), lines.count(b"5%b and %s"), errors) == (60, 60, [])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="a limit on the address space")
def test_a_file_larger_than_the_memory_costs_its_own_row_among_others(
    folder: Path, command_environment: dict[str, str]
) -> None:
    with open(folder / "large.jpg", "wb") as large:
        large.write((folder / "a.jpg").read_bytes())
        large.truncate(600 << 20)
    lines = [line(number) if number % 30 != 25 else line(number).replace("a.jpg", "large.jpg") for number in range(60)]
    (folder / "rows.jsonl").write_text("".join(lines))
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29)); "
        "from mmprompt.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", script, "render", "rows.jsonl", "--policy", "trusted"]
    done = subprocess.run(
        words, cwd=folder, env=command_environment, timeout=60, capture_output=True, check=False, text=True
    )
    assert done.returncode == 1, done.stderr
    assert [told in done.stderr for told in ("rows.jsonl:26: MM902", "rows.jsonl:56: MM902")] == [True, True]
    assert [json.loads(one)["id"] for one in done.stdout.splitlines()] == [f"r-{n}" for n in range(60) if n % 30 != 25]


def render_all(file: Path) -> bytes:
    sink = io.BytesIO()
    task = dataset_task(file)
    renderer = Renderer(task)
    with ChunkWriter(sink) as writer:
        render(renderer, task.samples(), writer)
    return sink.getvalue()


@pytest.mark.parametrize("ids", [[1e-7, 2.5, 1e16, -0.0], [True, False], [[1e16], ["x"]], [float("nan"), 1.5]])
@pytest.mark.parametrize("column", ["id", "key"])
def test_ids_of_any_kind_are_written_as_in_single_rows(column: str, ids: list[object], tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    rows = [{column: ids[number % len(ids)], "question": f"What is {number}?"} for number in range(120)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = dataset_task(file, map_columns={} if column == "id" else {column: "id"})
    assert lines_of(task, "vllm", formed=True) == lines_of(task, "vllm", formed=False)
