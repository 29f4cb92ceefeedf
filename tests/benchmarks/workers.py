"""What a second worker gains: rows that are passed on, pictures that are made smaller, frames of videos."""

from __future__ import annotations

import filecmp
import json
import os
import statistics
import subprocess
import sys
import time

import inputs
from grid_bound import warm_heap
from timing import Row
from video import h264_clip

from mmprompt import dataset_task
from mmprompt.media.changes import Changes
from mmprompt.render.renderer import Renderer
from mmprompt.render.run import render
from mmprompt.targets.chunk_writer import ChunkWriter

FROM_DISK, RESIZED, CLIPS = 8000, 200, 40
"""Rows of each kind: enough that the start of a decoding process, 0.25 s for videos, is a small part of the time."""

DECODING_BAR = 1.7
_BARE = """
import sys
import av
for name in sys.argv[1:]:
    with av.open(name) as container:
        container.streams.video[0].codec_context.thread_count = 1
        for _ in container.decode(video=0):
            pass
"""


def workers(folder: str, *, repetitions: int = 5) -> list[Row]:
    """Render with one worker and with two, in turns; every run reads its pictures from the disk."""
    folder = os.path.join(folder, "workers")
    images = inputs.write_jpegs(folder, FROM_DISK)
    clips = [f"media/{number}.mp4" for number in range(CLIPS)]
    for number, name in enumerate(clips):  # all different: what was made once is not made again
        with open(os.path.join(folder, name), "wb") as file:
            file.write(h264_clip(150 + number, 854, 480))
    paths = [os.path.join(folder, name) for name in (*images, *clips)]
    warm_heap()
    rows = []
    for what, media, changes, bar in (
        ("image rows from the disk, two workers against one", images, Changes(), 0.9),
        ("pictures made smaller, two workers against one", images[:RESIZED], Changes(max_side=512), DECODING_BAR),
        ("8 frames of 5 s 480p, two workers against one", clips, Changes(frames=8), DECODING_BAR),
    ):
        count = len(media)
        dataset = _write_rows(os.path.join(folder, "rows.jsonl"), media)
        seconds: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(repetitions):
            for number, spent in seconds.items():
                _forget(paths)
                began = time.perf_counter()
                _render(dataset, os.path.join(folder, f"{number}.out"), changes, number)
                spent.append(time.perf_counter() - began)
        if not filecmp.cmp(*(os.path.join(folder, f"{number}.out") for number in seconds), shallow=False):
            raise SystemExit("two workers write other bytes than one")
        one, two = (statistics.median(seconds[number]) for number in seconds)
        figures = f"{one / two:.2f} times as fast, wall; {count / two:,.0f} of {count / one:,.0f} a second, medians"
        if media is clips:
            figures += (
                f"; PyAV alone in two processes: {_bare_gain([os.path.join(folder, name) for name in clips]):.2f}"
            )
        rows.append(Row(what, figures, f">= {bar}", one / two >= bar))
    return rows


def _bare_gain(clips: list[str], *, repetitions: int = 3) -> float:
    """Return how much faster two processes decode clips than one does, without this package: what the machine gives."""
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(repetitions):
        for number, spent in seconds.items():
            began = time.perf_counter()
            processes = [subprocess.Popen([sys.executable, "-c", _BARE, *clips[at::number]]) for at in range(number)]
            if {process.wait() for process in processes} != {0}:
                raise SystemExit("PyAV does not decode the clips")
            spent.append(time.perf_counter() - began)
    return statistics.median(seconds[1]) / statistics.median(seconds[2])


def _write_rows(path: str, media: list[str]) -> str:
    """Write a row for each medium and return the path."""
    with open(path, "w", encoding="utf-8") as file:
        for number, name in enumerate(media):
            tag = "VIDEO" if name.endswith(".mp4") else "IMAGE"
            content = f"<AIS_{tag}_START>{name}<AIS_CONTENT_TAG><AIS_TEXT_START>What is it?<AIS_CONTENT_TAG>"
            file.write(json.dumps({"id": f"q-{number}", "content": content, "answer": "1"}) + "\n")
    return path


def _forget(paths: list[str]) -> None:
    """Have the pictures out of the page cache, and nothing left to be written."""
    os.sync()
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def _render(dataset: str, target: str, changes: Changes, number: int) -> None:
    task = dataset_task(dataset)
    with open(target, "wb", buffering=0) as file:
        report = render(Renderer(task, changes=changes), task.samples(), ChunkWriter(file), workers=number)
    if report.failed:
        raise SystemExit(f"{report.failed} rows of {dataset} failed")
