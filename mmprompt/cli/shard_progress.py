"""The bar of a run in shards: it moves as the processes of the shards do rows, which their files say."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from mmprompt.cli.progress import RowCounter
from mmprompt.datasets.crash_record import rows_done
from mmprompt.scale.work_folder import WorkFolder

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
            names = [name.partition(".") for name in os.listdir(self._folder.path)]
            for number, _, kind in names:
                if kind == "report" and number not in self._done and (report := self._folder.report(int(number))):
                    self._done[number] = report["rows"]
            working = [number for number, _, kind in names if kind == "row" and number not in self._done]
            rows = sum(self._done.values()) + sum(map(self._in_progress, working))
            self._move(rows - self._shown)
            self._shown = rows

    def _in_progress(self, number: str) -> int:
        with suppress(OSError):  # the shard is done since
            return rows_done(self._folder.file(int(number), "row"))
        return 0
