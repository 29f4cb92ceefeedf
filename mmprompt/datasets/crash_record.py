"""Which row of a shard its process was working on when it died: a small file that the death does not undo."""

from __future__ import annotations

import mmap
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType

from mmprompt.datasets.sample import Row, Sample
from mmprompt.datasets.side_files import opened_side, side_descriptor
from mmprompt.errors import RowError, TaskError, shown

MOST_DEATHS = 2
"""A row that ended its process so often is left out."""

_MOST_ELSEWHERE = 5
"""A shard whose process died so often while no row was worked on is given up."""

_NUMBERS = 512
_SIZE = 8 * _NUMBERS
_AT, _SESSION, _ELSEWHERE, _DEATHS, _FIRST = range(5)
_ROWS = _NUMBERS - 1
_DONE, _BETWEEN, _ROW_0 = 0, 1, 2
"""What ``_AT`` holds: nothing is begun, no row is worked on, or a row's number and 2."""


class CrashRecord:
    """Notes each row before it is worked on, in a file beside the shard. Use it as a context manager.

    The file is mapped into memory, so that a note costs less than a microsecond and outlives the process. Whoever opens
    the record next finds the row on which the process died. A row that ended two processes is left out from then on:
    its error (MM902) stands in its place. What was in progress when the whole run was stopped, not this process alone,
    counts as no death.

    Args:
        path: the file; it is made if it is not there.
        session: a number that all processes of one run share, and no other run.

    Raises:
        TaskError: the process of the shard died again and again while no row was worked on.
        OSError: the file cannot be written.
    """

    def __init__(self, path: str, session: int) -> None:
        self.path = path
        descriptor = side_descriptor(path, os.O_RDWR | os.O_CREAT)
        try:
            missing = _SIZE - os.fstat(descriptor).st_size
            if missing > 0:  # real blocks: a store to a hole of a full disk would end the process
                os.lseek(descriptor, 0, os.SEEK_END)
                os.write(descriptor, bytes(missing))
            self._map = mmap.mmap(descriptor, _SIZE)
        finally:
            os.close(descriptor)
        self._numbers = memoryview(self._map).cast("q")
        deaths, elsewhere = self._numbers[_DEATHS], self._numbers[_ELSEWHERE]
        if not (0 <= deaths <= _ROWS - _FIRST and 0 <= elsewhere < _MOST_ELSEWHERE):
            self._map[:] = bytes(_SIZE)  # it is damaged: no death is known
        self._begin(session)

    def _begin(self, session: int) -> None:
        """Count the death of the process before this one, if there was one in this run."""
        numbers = self._numbers
        at = numbers[_AT] if numbers[_SESSION] == session else _DONE
        numbers[_SESSION] = session
        if at >= _ROW_0 and _FIRST + numbers[_DEATHS] < _ROWS:
            numbers[_FIRST + numbers[_DEATHS]] = at - _ROW_0
            numbers[_DEATHS] += 1
        elif at != _DONE:
            numbers[_ELSEWHERE] += 1
        numbers[_AT] = _BETWEEN
        numbers[_ROWS] = 0
        deaths = Counter(numbers[_FIRST : _FIRST + numbers[_DEATHS]].tolist())
        self.poison = frozenset(row for row, times in deaths.items() if times >= MOST_DEATHS)
        if numbers[_ELSEWHERE] >= _MOST_ELSEWHERE:
            numbers[_ELSEWHERE] = 0
            self.close()
            what = f"the process of the shard beside {shown(self.path)} died {_MOST_ELSEWHERE} times outside its rows"
            raise TaskError(what, "see how much memory a worker may use, and run again", code="MM902")

    def rows(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the rows, each noted before; in place of a row that ended two processes its error."""
        numbers, poison = self._numbers, self.poison
        for row in rows:
            if isinstance(row, Sample):
                if row.row in poison:
                    yield _poisonous(row)
                    continue
                numbers[_AT] = row.row + _ROW_0
            yield row
            numbers[_AT] = _BETWEEN

    def done(self, rows: int) -> None:
        """Note how many rows of the shard are done, for ``rows_done``."""
        self._numbers[_ROWS] = rows

    def __enter__(self) -> CrashRecord:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the record: what comes now is no death."""
        self.close()

    def close(self) -> None:
        """Note that the process lives on, and let go of the file. It may be closed twice."""
        if not self._map.closed:
            self._numbers[_AT] = _DONE
            self._numbers.release()
            self._map.close()

    def remove(self) -> None:
        """Close the record and delete its file: the shard is done."""
        self.close()
        with suppress(FileNotFoundError):  # a process of a run that was killed did the same shard to its end
            os.unlink(self.path)


def rows_done(path: str) -> int:
    """Return how many rows the process that works with a record has done."""
    with opened_side(path) as file:
        numbers = memoryview(file.read(_SIZE).ljust(_SIZE, bytes(1))).cast("q")
        return int(numbers[_ROWS])


def _poisonous(row: Sample) -> RowError:
    what = f"the row ended the process that worked on it {MOST_DEATHS} times"
    return row.located(RowError(what, "check its media, or give each worker more memory", code="MM902"))
