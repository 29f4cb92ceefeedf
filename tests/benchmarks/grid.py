"""Rows of every shape to requests, each against the least that a program written by hand for it must do.

    python tests/benchmarks/grid.py                # all cells, about six minutes
    python tests/benchmarks/grid.py --quick        # fewer cells, fewer repetitions, about one minute
    python tests/benchmarks/grid.py chat jpeg      # the cells whose name has these words
    python tests/benchmarks/grid.py --no-processes # loops in this process only

A cell is a shape of rows, a medium, a kind of ids, a file format and a target. Its doors are ``render`` (lines to the
null device), ``body()`` of ``task.requests`` and, where no file is read, ``task.messages()``. A figure is CPU time in
microseconds a row, and in brackets the ratio of the bound to it: 1 is as fast as ``grid_bound.py``. Loops run in this
process after a warm-up. A process is measured as a whole, with many rows and with one, and the difference counts.
All contenders of a cell take turns, and the best repetition of each counts.
"""

from __future__ import annotations

import argparse
import base64
import gc
import importlib.util
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import grid_rows
import inputs
from grid_bound import READS, Cell, lines, warm_heap
from grid_table import FLAT, HEAD, Figures, Measured, comparisons, slowest
from rendering import bodies, check_same, drop, render_to_nowhere
from timing import Row, interleaved, print_table

from mmprompt import Task, dataset_task, load_task

HERE = os.path.dirname(os.path.abspath(__file__))
EMBEDDED = ("base64", "bytes")
ROWS, ROWS_BYTES = 60_000, 16 << 20
"""The most rows of a file whose media have names, and about the most bytes."""

EMBEDDED_ROWS, EMBEDDED_BYTES = 1_200, 300 << 20
LOOP_ROWS, LEAST_ROWS = 2_000, 64
SHAPES = tuple(shape for shape in grid_rows.SHAPES if shape != "sound")
BODY = """
import os, sys
from itertools import islice
from mmprompt import dataset_task, load_task
path, target, limit = sys.argv[1:]
task = load_task(path) if path.endswith(".json") else dataset_task(path)
with open(os.devnull, "wb") as sink:
    sink.writelines(request.body() for request in islice(task.requests(target), int(limit)))
"""


class Effort(NamedTuple):
    """How many seconds a run of a contender takes, in a loop and in a process, and how often it is run."""

    loop: float = 0.03
    loops: int = 5
    process: float = 0.2
    processes: int = 3


class Data(NamedTuple):
    """A file of rows: its path, what mmprompt opens, and how many rows it has."""

    path: str
    opened: str
    rows: int

    def task(self) -> Task:
        return load_task(self.opened) if self.opened.endswith(".json") else dataset_task(self.opened)


def all_cells(*, quick: bool) -> Iterator[tuple[Cell, bool]]:
    """Yield the cells, each with whether whole processes are measured too."""
    both, others = ("url", "jpeg"), ("openai", "anthropic", "gemini")
    yield from ((Cell(shape, medium), not quick or shape == "columns") for shape in SHAPES for medium in both)
    yield from ((Cell(*cell), True) for cell in (("columns", "base64"), ("sound", "wav")))
    yield Cell("columns", "bytes", form="parquet"), True
    yield from ((Cell("columns", medium, form=f), not quick) for f in ("csv", "parquet") for medium in both)
    for target, medium in itertools.product(others, both):
        yield Cell("template" if target == "anthropic" else "columns", medium, target=target), False
        if not quick:
            yield from ((Cell(shape, medium, target=target), False) for shape in ("images", "chat"))
    if quick:
        return
    yield from ((Cell(s, m, "number"), m == "url" or s in FLAT) for s in SHAPES for m in both)
    yield from ((Cell(shape, ids="none"), False) for shape in SHAPES)
    yield from ((Cell(s, m, form="csv"), False) for s in ("tags", "choices A-D", "images") for m in both)
    yield from ((Cell(shape, form="parquet"), False) for shape in ("options", "images", "sharegpt"))
    yield from ((Cell(shape, "base64"), True) for shape in ("images", "chat"))
    yield from ((Cell(shape, "bytes", form="parquet"), True) for shape in ("images", "sharegpt"))
    yield from ((Cell("sound", "wav", target=target), False) for target in ("openai", "gemini"))


def doors(cell: Cell) -> tuple[str, ...]:
    """Return the doors that send a cell; Anthropic's ``body()`` needs a task that says ``max_out_len``."""
    return ("render", "body") if cell.target != "anthropic" or cell.shape == "template" else ("render",)


class Grid:
    """Measures cells over files in a folder, with ``media`` files of each kind. ``how`` is the cheaper way to read one."""

    def __init__(self, folder: str, effort: Effort, media: int = 400, distinct: int = 24) -> None:
        self.folder = os.path.join(folder, "grid")
        self._effort = effort
        self._pictures = inputs.write_jpegs(self.folder, media, distinct)
        self._sounds = grid_rows.write_sounds(self.folder, media)
        self._data: dict[Cell, Data] = {}
        paths = [os.path.join(self.folder, name) for name in self._pictures]
        warm_heap()
        timed = interleaved({how: lambda read=read: deque(map(read, paths), 0) for how, read in READS.items()}, 9)
        self.how = min(timed, key=lambda how: timed[how].best_cpu)

    def data(self, cell: Cell, rows: int = 0) -> Data:
        """Return the file of a cell; cells that differ in the target alone share it. A file that holds media is small."""
        key = cell._replace(target="")
        if key not in self._data:
            size = ROWS_BYTES
            if cell.medium in EMBEDDED:
                rows, size = min(rows, EMBEDDED_ROWS if cell.shape == "columns" else EMBEDDED_ROWS // 4), EMBEDDED_BYTES
            made = grid_rows.rows(cell.shape, cell.ids, self._source(cell))
            name = f"{cell.shape}-{cell.medium}-{cell.ids}.{cell.form}".replace(" ", "-")
            self._data[key] = Data(*grid_rows.write(self.folder, name, cell.shape, made, rows, size))
        return self._data[key]

    def _source(self, cell: Cell) -> Callable[[], object]:
        numbers = itertools.count()
        if cell.medium == "url":
            return lambda: f"https://images.example.com/set-{(n := next(numbers)) % 17}/{n:08}.jpg"
        names = itertools.cycle(self._sounds if cell.medium == "wav" else self._pictures)
        if cell.medium not in EMBEDDED:
            return names.__next__
        prefix = "data:image/jpeg;base64," if cell.shape == "chat" else ""

        def embedded() -> object:
            name = next(names)
            with open(os.path.join(self.folder, name), "rb") as file:
                data = file.read()
            return {"bytes": data, "path": name} if cell.medium == "bytes" else prefix + base64.b64encode(data).decode()

        return embedded

    def check(self, cell: Cell, data: Data) -> None:
        """Refuse a cell whose requests are not those of the bound."""
        made = None if "body" in doors(cell) else itertools.repeat(b"{}")
        check_same(data.task(), lines(cell, data.path, self.how), cell.target, made)

    def measured(self, cell: Cell, *, processes: bool) -> Measured:
        """Return the figures of a cell. A file that holds its media is removed afterwards."""
        data = self.data(cell, ROWS if processes else LOOP_ROWS)
        self.check(cell, data)
        loops = self._loops(cell, data)
        made = Measured(cell, loops, self._processes(cell, data, loops) if processes else {})
        if cell.medium in EMBEDDED:
            os.remove(self._data.pop(cell._replace(target="")).path)
        return made

    def _loops(self, cell: Cell, data: Data) -> Figures:
        task, effort = data.task(), self._effort
        contenders: dict[str, Callable[[int], object]] = {
            "bound": lambda n: drop(islice(lines(cell, data.path, self.how), n)),
            "render": lambda n: render_to_nowhere(task, n, cell.target),
            "body": lambda n: drop(islice(bodies(task, cell.target), n)),
            "messages": lambda n: deque(islice(task.messages(), n), 0),
        }
        if "body" not in doors(cell):
            del contenders["body"]
        if cell.medium != "url" or cell.target != "vllm":  # it reads no files and knows no target
            del contenders["messages"]
        slowest_row = max(_seconds(run, LEAST_ROWS) for run in contenders.values()) / LEAST_ROWS
        rows = max(LEAST_ROWS, min(data.rows, LOOP_ROWS, int(2 * effort.loop / slowest_row)))
        passes = {name: max(1, int(effort.loop / _seconds(run, rows))) for name, run in contenders.items()}
        runs = {n: lambda run=run, times=passes[n]: [run(rows) for _ in range(times)] for n, run in contenders.items()}
        timed = interleaved(runs, effort.loops)
        return {name: found.best_cpu / passes[name] / rows * 1e6 for name, found in timed.items()}

    def _processes(self, cell: Cell, data: Data, loops: Figures) -> Figures:
        """Measure whole processes, as long as the loops let expect."""
        bound = [os.path.join(HERE, "grid_bound.py"), json.dumps(cell), data.path, self.how]
        render = ["-m", "mmprompt", "render", data.opened, "--target", cell.target, "-o", os.devnull, "--limit"]
        commands = {"bound": bound, "render": render, "body": ["-c", BODY, data.opened, cell.target]}
        counts = {
            n: max(2, min(data.rows, int(self._effort.process / loops[n] * 1e6))) for n in ("bound", *doors(cell))
        }
        spent: dict[tuple[str, int], list[float]] = {}
        for _ in range(self._effort.processes):
            for name, most in counts.items():
                for count in (1, most):
                    spent.setdefault((name, count), []).append(_cpu([*commands[name], str(count)]))
        return {n: (min(spent[n, most]) - min(spent[n, 1])) / (most - 1) * 1e6 for n, most in counts.items()}


def _seconds(run: Callable[[int], object], rows: int) -> float:
    run(rows)
    began = time.process_time()
    run(rows)
    return max(time.process_time() - began, 1e-6)


def _cpu(words: Sequence[str]) -> float:
    """Return the CPU seconds of a process of this Python."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=own)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"failed: {' '.join(words)}")
    return usage.ru_utime + usage.ru_stime


def grid(folder: str, words: Sequence[str] = (), *, quick: bool = False, processes: bool = True) -> list[Row]:
    """Measure and print the cells whose names have all of ``words``, and return what is compared across them."""
    made, measured = Grid(folder, Effort(0.012, 3, 0.1, 2) if quick else Effort()), list[Measured]()
    print(f"us of CPU a row, and the bound's over it; files are read by {made.how}\n{HEAD}", flush=True)
    gc.freeze()
    for cell, whole in all_cells(quick=quick):
        if not all(word in cell.name for word in words):
            continue
        if cell.form == "parquet" and importlib.util.find_spec("pyarrow") is None:
            print(f"{cell.name:<46}left out: it needs pyarrow")
            continue
        measured.append(made.measured(cell, processes=whole and processes))
        print(measured[-1], flush=True)
    print("\n".join(slowest(measured)), flush=True)
    return list(comparisons(measured))


def main() -> int:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-processes", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mmprompt-grid-") as folder:
        rows = grid(folder, asked.words, quick=asked.quick, processes=not asked.no_processes)
    print_table(rows)
    return 1 if any(row.reached is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
