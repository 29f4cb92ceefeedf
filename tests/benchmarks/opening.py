"""Guarded reading of files, against a plain open and read."""

from __future__ import annotations

import os

import inputs
from timing import Row, interleaved

from mmprompt import MediaPolicy
from mmprompt.media.files import GuardedFiles

BAR = 1.1


def opening(folder: str, *, count: int = 2000, repetitions: int = 9) -> list[Row]:
    """Read files of 100 to 250 KiB from the page cache, with all checks and with none."""
    folder = os.path.join(folder, "opening")
    names = inputs.write_jpegs(folder, count)
    files = GuardedFiles(MediaPolicy([folder]))
    paths = [os.path.join(folder, name) for name in names]
    timed = interleaved({"guarded": lambda: _guarded(files, names), "plain": lambda: _plain(paths)}, repetitions)
    ratio = timed["guarded"].best_cpu / timed["plain"].best_cpu
    each = ", ".join(f"{name} {t.best_cpu / count * 1e6:.1f} us" for name, t in timed.items())
    return [Row("guarded open + read, against a plain one", f"{ratio:.2f} ({each})", f"<= {BAR}", ratio <= BAR)]


def _guarded(files: GuardedFiles, names: list[str]) -> None:
    for name in names:
        files.read(name)


def _plain(paths: list[str]) -> None:
    for path in paths:
        with open(path, "rb") as file:
            file.read()
