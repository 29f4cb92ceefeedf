"""What a second worker gains where it can: pictures that come from the disk, and pictures that are made smaller."""

from __future__ import annotations

import os
import statistics
import time

import inputs
from rendering import check_same, warm_heap
from timing import Row

from mmprompt import dataset_task
from mmprompt.media.changes import Changes
from mmprompt.render.renderer import Renderer
from mmprompt.render.run import render
from mmprompt.targets.chunk_writer import ChunkWriter

FROM_DISK, RESIZED = 8000, 400


def workers(folder: str, *, repetitions: int = 5) -> list[Row]:
    """Render with one worker and with two, in turns; every run reads its pictures from the disk."""
    folder = os.path.join(folder, "workers")
    images = inputs.write_jpegs(folder, FROM_DISK)
    paths = [os.path.join(folder, image) for image in images]
    warm_heap()
    rows = []
    for what, count, changes in (
        ("image rows from the disk, two workers against one", FROM_DISK, Changes()),
        ("pictures made smaller, two workers against one", RESIZED, Changes(max_side=512)),
    ):
        dataset = inputs.write_rows(os.path.join(folder, "rows.jsonl"), inputs.samples(images, count))
        seconds: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(repetitions):
            for number, spent in seconds.items():
                _forget(paths)
                began = time.perf_counter()
                _render(dataset, os.path.join(folder, f"{number}.out"), changes, number)
                spent.append(time.perf_counter() - began)
        check_same(*(os.path.join(folder, f"{number}.out") for number in seconds))
        one, two = (statistics.median(seconds[number]) for number in seconds)
        figures = f"{one / two:.2f} times as fast, wall; {count / two:,.0f} of {count / one:,.0f} a second, medians"
        rows.append(Row(what, figures, "> 1", one > two))
    return rows


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
