"""Peak resident memory of ``mmprompt render``, which must not grow with the rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence

import inputs
from timing import Row

BAR = 45.0
IDS_BAR = 60.0
PICTURES_BAR = 120.0
COUNTS = (1_000, 100_000, 1_000_000)

_TASK = """\
dataset = {path = "many.jsonl"}
infer_cfg = {prompt_template = {type = "MMPromptTemplate", template = {round = [{role = "HUMAN", prompt_mm = {image = \
{type = "image_url", image_url = {url = "{image}"}}, text = {type = "text", text = "{question}"}}}]}}}
"""

LAUNCH = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(process.pid, 0)
print(usage.ru_maxrss, os.waitstatus_to_exitcode(status))
"""
"""Run between us and the measured process: a process starts with the peak of the one that started it."""


def peaks(folder: str) -> list[Row]:
    """Measure URL rows, with and without a task, rows of a kind of their own, string ids, and rows with pictures."""
    path, task = os.path.join(folder, "many.jsonl"), os.path.join(folder, "many.toml")
    with open(task, "w", encoding="utf-8") as file:
        file.write(_TASK)
    rows = []
    found: dict[str, list[float]] = {"": [], ", with a task": []}
    for count in COUNTS:
        _write(path, count)
        for (_, each), source in zip(found.items(), (path, task), strict=True):
            each.append(_rendering(source))
    for what, each in found.items():
        figures = ", ".join(f"{peak:.1f} at {count:,}" for peak, count in zip(each, COUNTS, strict=True))
        rows.append(Row(f"peak memory, URL rows{what}, MiB", figures, f"<= {BAR:.0f}", max(each) <= BAR))
    for what, own in (("columns", _own_column), ("lists", _own_list)):
        each = []
        for count in COUNTS[:2]:
            _write(path, count, own=own)
            each.append(_rendering(path))
        figures = ", ".join(f"{peak:.1f} at {count:,}" for peak, count in zip(each, COUNTS, strict=False))
        rows.append(
            Row(f"peak memory, each row with {what} of its own, MiB", figures, f"<= {BAR:.0f}", max(each) <= BAR)
        )
    for times in (1, 2):
        _write(path, times * COUNTS[-1], distinct=COUNTS[-1])
        peak = _rendering(path)
        what = f"peak memory, {COUNTS[-1]:,} string ids, each {('once', 'twice')[times - 1]}, MiB"
        rows.append(Row(what, f"{peak:.1f}", f"< {IDS_BAR:.0f}", peak < IDS_BAR))
    os.remove(path)
    pictures = os.path.join(folder, "images.jsonl")
    if not os.path.exists(pictures):
        pictures = inputs.write_rows(pictures, inputs.samples(inputs.write_jpegs(folder, 1000), 1000))
    for workers in (1, 2):
        peak = _rendering(pictures, "--limit", "1000", "--workers", str(workers))
        what = f"peak memory, 1,000 image rows, {workers} worker{'s'[: workers - 1]}, MiB"
        rows.append(Row(what, f"{peak:.1f}", f"< {PICTURES_BAR:.0f}", peak < PICTURES_BAR))
    return rows


def _own_column(number: int) -> dict[str, object]:
    return {f"column {number}": "x"}


def _own_list(number: int) -> dict[str, object]:
    return {"polygons": [[0.5] * (number // 7**place % 7 + 1) for place in range(6)]}


def _write(path: str, count: int, distinct: int = 0, own: Callable[[int], dict[str, object]] = lambda _: {}) -> None:
    """Write URL rows, one by one, with what is their own; with ``distinct`` they have so many string ids in turn."""
    with open(path, "w", encoding="utf-8") as file:
        for number in range(count):
            row = {"image": f"https://images.example.com/{number:08}.jpg", "question": f"What is on picture {number}?"}
            name = {"id": f"question-{number % distinct:07}"} if distinct else {}
            file.write(json.dumps({**name, **row, **own(number)}) + "\n")


def _rendering(dataset: str, *options: str) -> float:
    return peak_of("render", dataset, "-o", os.devnull, *options, codes=("0", "1"))  # 1: ids come twice


def peak_of(*words: str, codes: Sequence[str] = ("0",)) -> float:
    """Return the peak in MiB of a command of ``mmprompt`` in a process of its own, which exits with one of ``codes``."""
    command = [sys.executable, "-m", "mmprompt", *words]
    ran = subprocess.run([sys.executable, "-c", LAUNCH, *command], stdout=subprocess.PIPE, text=True, check=True)
    peak, code = ran.stdout.split()[-2:]
    if code not in codes:
        raise SystemExit(f"mmprompt {words[0]} failed")
    return int(peak) / (1024 if sys.platform != "darwin" else 1 << 20)
