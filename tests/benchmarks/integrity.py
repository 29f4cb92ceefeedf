"""The integrity walk of JPEGs against Pillow's bare one, on one thread and on two."""

from __future__ import annotations

import io
import os
import statistics
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import inputs
from PIL import Image
from timing import Row, interleaved

from mmprompt.media import MediaPolicy
from mmprompt.media.image.reading import check_image

WALK_BAR = 1.15
THREADS_BAR = 1.7
COUNT = 120
POLICY = MediaPolicy()


def jpegs(folder: str, *, repetitions: int = 25) -> list[Row]:
    """Walk the same JPEGs of 100 to 250 KiB, in memory, by ``check_image`` and by a bare draft and load."""
    place = os.path.join(folder, "integrity")
    files = []
    for name in inputs.write_jpegs(place, COUNT):
        with open(os.path.join(place, name), "rb") as file:
            files.append(file.read())
    with ThreadPoolExecutor(2) as pool:
        timed = interleaved(
            {
                "ours": lambda: _all(_ours, files),
                "bare": lambda: _all(_bare, files),
                "ours, two": lambda: _two(pool, _ours, files),
                "bare, two": lambda: _two(pool, _bare, files),
            },
            repetitions,
        )
    ours, bare = timed["ours"], timed["bare"]
    ratio = ours.best_cpu / bare.best_cpu
    threads, theirs = (
        statistics.median(one / two for one, two in zip(timed[name].wall, timed[f"{name}, two"].wall, strict=True))
        for name in ("ours", "bare")
    )
    return [
        Row(
            "integrity of JPEGs, against Pillow's bare draft and load",
            f"{ratio:.2f} of its CPU time, {ours.best_wall / bare.best_wall:.2f} wall; "
            f"{ours.best_cpu / COUNT * 1000:.2f} of {bare.best_cpu / COUNT * 1000:.2f} ms a picture; "
            f"median {ours.spread:+.0%}, {bare.spread:+.0%}",
            f"<= {WALK_BAR}",
            ratio <= WALK_BAR,
        ),
        Row(
            "the same on two threads, against one",
            f"{threads:.2f} times as fast, wall, median; bare Pillow {theirs:.2f}",
            f">= {THREADS_BAR}",
            threads >= THREADS_BAR,
        ),
    ]


def _all(walk: Callable[[bytes], object], files: Iterable[bytes]) -> None:
    for data in files:
        walk(data)


def _two(pool: ThreadPoolExecutor, walk: Callable[[bytes], object], files: list[bytes]) -> None:
    """Each of two threads takes the next file when it is done with one."""
    shared = iter(files)
    list(pool.map(lambda _: _all(walk, shared), range(2)))


def _ours(data: bytes) -> object:
    return check_image(data, POLICY)


def _bare(data: bytes) -> object:
    with Image.open(io.BytesIO(data), formats=("JPEG",)) as image:
        image.draft("RGB", (image.width // 8, image.height // 8))
        return image.load()
