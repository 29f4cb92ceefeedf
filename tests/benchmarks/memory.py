"""Peak resident memory of ``mmprompt render``, which must not grow with the rows."""

from __future__ import annotations

import os
import subprocess
import sys

import inputs
from timing import Row

BAR = 120.0
GROWTH = 6.0
COUNTS = (1_000, 10_000, 100_000)

LAUNCH = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(process.pid, 0)
print(usage.ru_maxrss, os.waitstatus_to_exitcode(status))
"""
"""Run between us and the measured process: a process starts with the peak of the one that started it."""


def peaks(folder: str) -> list[Row]:
    """Measure URL rows at several lengths, and image rows if ``images.jsonl`` is there."""
    rows = []
    found = []
    for count in COUNTS:
        path = inputs.write_rows(os.path.join(folder, "many.jsonl"), inputs.samples(inputs.urls(count), count))
        found.append(_rendering(path, os.path.join(folder, "peak.out")))
    figures = ", ".join(f"{peak:.1f} at {count:,}" for peak, count in zip(found, COUNTS, strict=True))
    flat = max(found) < BAR and max(found) - min(found) < GROWTH
    rows.append(Row("peak memory, URL rows, MiB", figures, f"< {BAR:.0f}, grows < {GROWTH:.0f}", flat))
    pictures = os.path.join(folder, "images.jsonl")
    if not os.path.exists(pictures):
        pictures = inputs.write_rows(pictures, inputs.samples(inputs.write_jpegs(folder, 1000), 1000))
    for workers in (1, 2):
        peak = _rendering(pictures, os.path.join(folder, "peak.out"), "--limit", "1000", "--workers", str(workers))
        what = f"peak memory, 1,000 image rows, {workers} worker{'s'[: workers - 1]}, MiB"
        rows.append(Row(what, f"{peak:.1f}", f"< {BAR:.0f}", peak < BAR))
    return rows


def _rendering(dataset: str, target: str, *options: str) -> float:
    return peak_of("render", dataset, "-o", target, *options)


def peak_of(*words: str) -> float:
    """Return the peak in MiB of a command of ``mmprompt`` in a process of its own."""
    command = [sys.executable, "-m", "mmprompt", *words]
    ran = subprocess.run([sys.executable, "-c", LAUNCH, *command], stdout=subprocess.PIPE, text=True, check=True)
    peak, code = ran.stdout.split()[-2:]
    if code != "0":
        raise SystemExit(f"mmprompt {words[0]} failed")
    return int(peak) / (1024 if sys.platform != "darwin" else 1 << 20)
