"""The progress bar of a run, on standard error if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Protocol

from mmprompt.datasets.dataset_file import line_count

if TYPE_CHECKING:
    from mmprompt.datasets.read import Dataset

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
