"""The benchmarks, one command: ``python tests/benchmarks/run.py [PART …]``; the parts are in ``PARTS``.

Needs the package installed, Linux or macOS, and 4 GB of temporary disk (``TMPDIR`` says where). All ratios come from
one process with interleaved repetitions; the best repetition counts. Exits with 1 if a bar is missed.
``--peers [PYTHON …]`` measures other programs instead.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Callable
from functools import partial

import asking
import check_images
import checking
import examples
import filling
import grid
import integrity
import memory
import opening
import peers
import start
import video
import workers
from timing import Row, print_table

PARTS = (
    "grid",
    "video",
    "frames",
    "opening",
    "filling",
    "examples",
    "integrity",
    "check",
    "workers",
    "memory",
    "checking",
    "asking",
    "start",
)


def main(wanted: list[str]) -> int:
    """Measure the parts that are wanted and print them; after ``--peers`` stand interpreters, see ``peers``."""
    if wanted[:1] == ["--peers"]:
        return peers.main(wanted[1:])
    for name in wanted:
        if name not in PARTS:
            print(f"there is no part {name}; known: {', '.join(PARTS)}", file=sys.stderr)
            return 2
    rows: list[Row] = []
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}", flush=True)
    with tempfile.TemporaryDirectory(prefix="mmprompt-bench-") as folder:
        measures: dict[str, Callable[[], list[Row]]] = {
            "grid": partial(grid.grid, folder),
            "opening": partial(opening.opening, folder),
            "video": partial(video.passed_through, folder),
            "frames": video.frames,
            "filling": filling.filling,
            "examples": examples.examples,
            "integrity": partial(integrity.jpegs, folder),
            "check": partial(check_images.pictures, folder),
            "workers": partial(workers.workers, folder),
            "memory": partial(memory.peaks, folder),
            "checking": partial(checking.checking, folder),
            "asking": partial(asking.asking, folder),
            "start": start.start,
        }
        for name in wanted or PARTS:
            print(f"measuring {name} …", file=sys.stderr, flush=True)
            rows += measures[name]()
    print_table(rows)
    return 1 if any(row.reached is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
