"""A part of a dataset's file that can be read alone: whole rows, with the numbers that they have in the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterator


class Span(NamedTuple):
    """Where the rows of a part begin and end.

    ``start`` and ``end`` are byte offsets, of a Parquet file numbers of row groups; ``end`` is None for the end of the
    file. ``line`` is the 1-based line at ``start``, and ``row`` the 0-based number of the first row in the file.
    """

    start: int = 0
    end: int | None = None
    line: int = 1
    row: int = 0


WHOLE = Span()
"""The whole file."""


class Shard(TypedDict):
    """A part of a dataset as plain data, such as JSON can hold.

    ``part`` is the 0-based number of its ``file`` among the dataset's files; ``start``, ``end``, ``line`` and ``row``
    are those of a ``Span`` of this file. ``first`` is the 0-based number of its first row in the dataset, and ``rows``
    how many it has; None if the dataset cannot be cut, and the shard is all of it. ``chats``: its rows are chats.
    """

    file: str | None
    part: int
    start: int
    end: int | None
    line: int
    row: int
    first: int
    rows: int | None
    chats: bool


def rows_from(rows: slice, first: int) -> slice:
    """Return the range ``rows`` without the numbers below ``first``."""
    start, step = rows.start or 0, rows.step or 1
    return rows if first <= start else slice(first + (start - first) % step, rows.stop, rows.step)


class Cuts:
    """Makes spans of ``rows`` rows each from the places where a file may be cut, given in order."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._begun = WHOLE

    @property
    def next_row(self) -> int:
        """The number of the first row that the span which is open does not take."""
        return self._begun.row + self._rows

    def at(self, start: int, line: int, row: int) -> Iterator[tuple[Span, int]]:
        """Yield the span that ends here, with its number of rows, if it has enough of them."""
        if row >= self.next_row:
            yield self._begun._replace(end=start), row - self._begun.row
            self._begun = Span(start, None, line, row)

    def last(self, row: int, end: int) -> Iterator[tuple[Span, int]]:
        """Yield the span that ends where the file does; the file has ``row`` rows."""
        if end > self._begun.start or self._begun == WHOLE:
            yield self._begun._replace(end=end), row - self._begun.row
