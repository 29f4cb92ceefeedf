"""``mmprompt check``: its peak memory over 100,000 rows, and what a second worker gains where pictures are decoded."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np
from memory import LAUNCH
from PIL import Image
from timing import Row

ROWS, DISTINCT = 100_000, 10_000
BAR = 300.0
LARGE = 150
GAIN = 1.7


def checking(folder: str, *, repetitions: int = 3) -> list[Row]:
    """Check many rows with few pictures once, and few rows with large pictures by one worker and by two, in turns."""
    folder = os.path.join(folder, "checking")
    os.makedirs(os.path.join(folder, "media"))
    small = [_picture(folder, f"media/small-{number}.jpg", number, (256, 192)) for number in range(DISTINCT)]
    many = _rows(os.path.join(folder, "many.jsonl"), [small[number % DISTINCT] for number in range(ROWS)])
    seconds, peak = _check(many, "1")
    figures = f"{peak:.0f} MiB, {ROWS / seconds:,.0f} rows a second"
    rows = [Row(f"check: peak memory, {ROWS:,} rows, {DISTINCT:,} JPEGs", figures, f"< {BAR:.0f}", peak < BAR)]
    large = [_picture(folder, f"media/large-{number}.png", number, (1600, 1200)) for number in range(LARGE)]
    few = _rows(os.path.join(folder, "few.jsonl"), large)
    spent: dict[str, list[float]] = {"1": [], "2": []}
    for _ in range(repetitions):
        for workers, each in spent.items():
            each.append(_check(few, workers)[0])
    one, two = (statistics.median(each) for each in spent.values())
    figures = f"{one / two:.2f} times as fast, wall; {LARGE / two:,.0f} of {LARGE / one:,.0f} a second, medians"
    rows.append(Row("check: large PNGs, two workers against one", figures, f">= {GAIN}", one / two >= GAIN))
    return rows


def _picture(folder: str, name: str, seed: int, size: tuple[int, int]) -> str:
    """Write a picture that looks like no other, and return its name."""
    draw = np.random.default_rng([seed, size[0]])
    coarse = Image.fromarray(draw.integers(0, 256, (9, 12, 3), dtype=np.uint8))
    coarse.resize(size, Image.Resampling.BICUBIC).save(os.path.join(folder, name), quality=85, compress_level=1)
    return name


def _rows(path: str, media: list[str]) -> str:
    with open(path, "w", encoding="utf-8") as file:
        for number, name in enumerate(media):
            row = {"id": f"q-{number}", "question": f"What is on picture {number}?", "image": name, "answer": "a thing"}
            file.write(json.dumps(row) + "\n")
    return path


def _check(dataset: str, workers: str) -> tuple[float, float]:
    """Return the seconds and the peak in MiB of checking a dataset in a process of its own, without its children."""
    command = [sys.executable, "-m", "mmprompt", "check", dataset, "--workers", workers, "--statistics"]
    began = time.perf_counter()
    ran = subprocess.run([sys.executable, "-c", LAUNCH, *command], capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - began
    peak, code = ran.stdout.split()[-2:]
    if code not in ("0", "1"):
        raise SystemExit(f"mmprompt check failed: {ran.stderr}")
    return seconds, int(peak) / (1024 if sys.platform != "darwin" else 1 << 20)
