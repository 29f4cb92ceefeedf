"""The journals of a run in shards: what stands in the run's own goes to them first, and what they add comes back."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Generator, Sequence
from contextlib import closing, suppress

from mmprompt.datasets.side_files import side_bytes, side_output
from mmprompt.datasets.span import Shard
from mmprompt.run.journal import parsed_line
from mmprompt.run.manifest import Manifest
from mmprompt.scale.reports import HINT
from mmprompt.scale.work_folder import WorkFolder
from mmprompt.targets.json_files import COUNT, checked_json

_KIND = "journal"
_SEED = "seed"
_MARK = "seeded"
_HELD = 1 << 23
"""Bytes of lines that are kept in memory until they go to the journals of their shards."""


class ShardJournals:
    """The journals of the shards of one run, in its work folder.

    Args:
        journal: the journal of the run; nobody else writes it.
        folder: the work folder.
        shards: all shards, in order.
    """

    def __init__(self, journal: str, folder: WorkFolder, shards: Sequence[Shard]) -> None:
        self._journal = journal
        self._folder = folder
        self._firsts = [shard["first"] for shard in shards]
        self._mark = os.path.join(folder.path, _MARK)

    def path(self, number: int) -> str:
        """Return the name of a shard's journal."""
        return self._folder.file(number, _KIND)

    def seed(self, manifest: Manifest) -> None:
        """Give each shard the lines of its rows that stand in the run's journal, so that it asks only for the others.

        If that was done before, only what a merge that did not end has added is taken back. If another run has written
        the journal since, it keeps what it has and gets what the shards have, and the shards' journals are made anew.

        Raises:
            OSError: a file cannot be written.
        """
        if os.path.exists(self._mark):
            size = checked_json(side_bytes(self._mark), COUNT, self._mark, HINT)
            if self._holds_only_merged(size):
                os.truncate(self._journal, size)
                return
            self.merge()
        for number in range(len(self._firsts)):
            self._remove(number)
        held: dict[int, list[bytes]] = defaultdict(list)
        size = 0
        with open(self._journal, "rb") as lines:
            for text in lines:
                if (line := parsed_line(text)) is not None:
                    held[max(bisect_right(self._firsts, line.row) - 1, 0)].append(text)
                size += len(text)
                if size > _HELD:
                    self._add(held, manifest)
                    size = 0
        self._add(held, manifest)
        with side_output(self._mark, cleans=False) as writer:
            writer.write([b"%d" % os.path.getsize(self._journal)])

    def answered(self, number: int) -> int:
        """Return how many rows of a shard have a prediction in its journal; with repeats a row counts once for each."""
        if not os.path.exists(path := self.path(number)):
            return 0
        with open(path, "rb") as lines:
            found = (line for line in map(parsed_line, lines) if line is not None and line.prediction is not None)
            return len({(line.row, line.repeat) for line in found})

    def merge(self) -> None:
        """Append what the shards' journals have beside their seeds to the run's, in the order of shards.

        A line that a killed process did not end is left out. What is merged is not merged again: the run's journal may
        have newer lines of the same rows by then, and a later ``seed`` begins with that journal.

        Raises:
            OSError: the journal cannot be written.
        """
        with open(self._journal, "ab") as merged:
            merged.writelines(self._added())
            merged.flush()
            os.fsync(merged.fileno())
        with suppress(FileNotFoundError):
            os.unlink(self._mark)

    def _added(self) -> Generator[bytes, None, None]:
        """Yield what the shards' journals have beside their seeds, in the order of shards."""
        for number in range(len(self._firsts)):
            if os.path.exists(path := self.path(number)):
                with open(path, "rb") as lines:
                    lines.seek(self._seeded(number))
                    yield from (line for line in lines if line.endswith(b"\n"))

    def _holds_only_merged(self, size: int) -> bool:
        """Return whether all that the journal has after ``size`` bytes is what a merge would add."""
        if os.path.getsize(self._journal) < size:
            return False
        with open(self._journal, "rb") as lines, closing(self._added()) as added:
            lines.seek(size)
            return all(line == next(added, None) for line in lines)

    def _add(self, held: dict[int, list[bytes]], manifest: Manifest) -> None:
        for number, texts in held.items():
            manifest.save(self.path(number))
            for kind in (_KIND, _SEED):
                with open(self._folder.file(number, kind), "ab") as file:
                    file.write(b"".join(texts) if kind == _KIND else b"%d\n" % sum(map(len, texts)))
        held.clear()

    def _seeded(self, number: int) -> int:
        """Return how many bytes of a shard's journal are its seed."""
        try:
            with self._folder.opened(number, _SEED) as file:
                return sum([checked_json(line, COUNT, file.name, HINT) for line in file])
        except FileNotFoundError:
            return 0

    def _remove(self, number: int) -> None:
        for kind in (_KIND, _SEED):
            if os.path.exists(name := self._folder.file(number, kind)):
                os.unlink(name)
