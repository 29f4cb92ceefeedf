"""The progress bar of a run, on standard error if that is a terminal.

The bar of a run in shards moves as the processes of the shards do rows, which their files say.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol

from mmprompt.datasets.dataset_file import line_count
from mmprompt.errors import TaskError

if TYPE_CHECKING:
    from mmprompt.datasets.read import Dataset
    from mmprompt.scale.work_folder import WorkFolder

_A_ROW_A_LINE = ("jsonl", "mm_custom", "openai")


class RowCounter:
    """Counts rows: call it after each one. Where there is a bar, ``tell`` sets the text behind its rate."""

    __slots__ = ("move", "rows", "tell")

    def __init__(self) -> None:
        self.rows = 0
        self.move: Callable[..., object] | None = None
        self.tell: Callable[[str], object] | None = None

    def __call__(self) -> None:
        """Count a row, and move the bar if there is one."""
        self.rows += 1
        if self.move is not None:
            self.move()

    def add(self, rows: int) -> None:
        """Count several rows."""
        self.rows += rows
        if self.move is not None:
            self.move(rows)


class Lines(Protocol):
    """What writes lines to the terminal while a bar is shown there: it calls ``make_room`` before each."""

    make_room: Callable[[], object] | None


@contextmanager
def progress(counter: RowCounter, lines: Lines, dataset: Dataset | None, limit: int | None) -> Iterator[None]:
    """Show a bar on a terminal while the block runs. The counter moves it; a line clears it first."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    from tqdm import tqdm  # noqa: PLC0415  # only on a terminal

    by_line = dataset is not None and dataset.format in _A_ROW_A_LINE
    rows = line_count(dataset.path) if by_line and dataset is not None and dataset.path is not None else None
    total = limit if rows is None or (limit is not None and limit < rows) else rows
    with tqdm(unit=" rows", total=total, mininterval=0.2, file=sys.stderr) as bar:
        counter.move, lines.make_room = bar.update, bar.clear
        counter.tell = partial(bar.set_postfix_str, refresh=False)
        yield
        counter.move = counter.tell = lines.make_room = None
        bar.total = total and bar.n


_NUMBERED = re.compile(r"[0-9]{5,9}\.")
_PAUSE = 0.3
"""Seconds between two looks; a look at many shards is followed by ten times its own time."""


@contextmanager
def shard_progress(counter: RowCounter, folder: WorkFolder) -> Iterator[None]:
    """Move the bar, if there is one, while the block runs. Rows that are merged do not move it again."""
    if counter.move is None:
        yield
        return
    watch, counter.move = _Watch(counter.move, folder), None
    try:
        yield
    finally:
        watch.stop()


class _Watch:
    """A thread that looks at the files of the shards from time to time, and moves a bar to the rows that are done."""

    def __init__(self, move: Callable[[int], object], folder: WorkFolder) -> None:
        self._move, self._folder = move, folder
        self._done: dict[str, int] = {}
        self._shown = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mmprompt-progress", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look once more, and end."""
        self._ended.set()
        self._thread.join()
        self._look()

    def _run(self) -> None:
        pause = 0.0
        while not self._ended.wait(pause):
            began = time.monotonic()
            self._look()
            pause = max(_PAUSE, 10 * (time.monotonic() - began))

    def _look(self) -> None:
        with suppress(OSError):
            names = [name.partition(".") for name in os.listdir(self._folder.path) if _NUMBERED.match(name)]
            for number, _, kind in names:
                if kind != "report" or number in self._done:
                    continue
                if report := self._folder.report(int(number)):
                    self._done[number] = report["rows"]
            working = [number for number, _, kind in names if kind == "row" and number not in self._done]
            rows = sum(self._done.values()) + sum(map(self._in_progress, working))
            self._move(rows - self._shown)
            self._shown = rows

    def _in_progress(self, number: str) -> int:
        from mmprompt.datasets.crash_record import rows_done  # noqa: PLC0415  # only for a run in shards

        with suppress(OSError, TaskError):  # the shard is done since, or the file is no record
            return rows_done(self._folder.file(int(number), "row"))
        return 0
