"""The integrity walk of JPEGs: against Pillow's bare one, and in the sandbox with one child process and with two."""

from __future__ import annotations

import io
import os
import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import inputs
from PIL import Image
from timing import Row, Timed, interleaved

from mmprompt.errors import MMPromptError
from mmprompt.media import MediaPolicy
from mmprompt.media.image.reading import check_image
from mmprompt.media.sandbox.decoders import IsolatedDecoder
from mmprompt.media.sandbox.jobs import name_of, run_each

WALK_BAR = 1.15
CHILD_BAR = 0.85
CHILDREN_BAR = 1.7
COUNT = 120
TOGETHER = 16
"""Pictures in one job, as ``mmprompt check`` decodes them."""

POLICY = MediaPolicy()


def jpegs(folder: str, *, repetitions: int = 25) -> list[Row]:
    """Walk the same JPEGs of 100 to 250 KiB, in memory: by ``check_image`` here and in children, and by bare Pillow."""
    place = os.path.join(folder, "integrity")
    files = []
    for name in inputs.write_jpegs(place, COUNT):
        with open(os.path.join(place, name), "rb") as file:
            files.append(file.read())
    halves = (files[::2], files[1::2])
    with ThreadPoolExecutor(2) as pool, IsolatedDecoder(POLICY) as decoder:
        timed = interleaved(
            {
                "ours": lambda: _all(_ours, files),
                "bare": lambda: _all(_bare, files),
                "one child": lambda: _in_child(decoder, files),
                "two children": lambda: list(pool.map(lambda half: _in_child(decoder, half), halves)),
            },
            repetitions,
        )
    ours, bare = timed["ours"], timed["bare"]
    ratio = ours.best_cpu / bare.best_cpu
    return [
        Row(
            "integrity of JPEGs, against Pillow's bare draft and load",
            f"{ratio:.2f} of its CPU time, {ours.best_wall / bare.best_wall:.2f} wall; "
            f"{ours.best_cpu / COUNT * 1000:.2f} of {bare.best_cpu / COUNT * 1000:.2f} ms a picture; "
            f"median {ours.spread:+.0%}, {bare.spread:+.0%}",
            f"<= {WALK_BAR}",
            ratio <= WALK_BAR,
        ),
        _faster("the same in one child process, against this process", ours, timed["one child"], CHILD_BAR),
        _faster("the same in two, against one", timed["one child"], timed["two children"], CHILDREN_BAR),
    ]


def _faster(what: str, slow: Timed, fast: Timed, bar: float) -> Row:
    speed = statistics.median(one / other for one, other in zip(slow.wall, fast.wall, strict=True))
    return Row(what, f"{speed:.2f} times as fast, wall, median", f">= {bar}", speed >= bar)


def _all(walk: Callable[[bytes], object], files: list[bytes]) -> None:
    for data in files:
        walk(data)


def _in_child(decoder: IsolatedDecoder, files: list[bytes]) -> None:
    for at in range(0, len(files), TOGETHER):
        many = [(data, POLICY) for data in files[at : at + TOGETHER]]
        for facts in decoder.run(run_each, name_of(check_image), many, POLICY.timeout / 2):
            if isinstance(facts, MMPromptError):
                raise facts


def _ours(data: bytes) -> object:
    return check_image(data, POLICY)


def _bare(data: bytes) -> object:
    with Image.open(io.BytesIO(data), formats=("JPEG",)) as image:
        image.draft("RGB", (image.width // 8, image.height // 8))
        return image.load()
