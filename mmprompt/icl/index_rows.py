"""Rows of an index set: what retrievers need of them, and whether one is the test sample itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from mmprompt.datasets.row_ids import ID_COLUMNS


class IndexRow(Protocol):
    """What a retriever needs of a row of the index set or the test set."""

    @property
    def columns(self) -> Mapping[str, object]:
        """Column to value."""
        ...

    @property
    def id(self) -> object:
        """The id with its JSON type. A row without one has its row number."""
        ...

    @property
    def file(self) -> str | None:
        """The file of the row. None for rows given in Python."""
        ...

    @property
    def line(self) -> int | None:
        """The 1-based line where the row begins."""
        ...

    @property
    def row(self) -> int:
        """The 0-based number of the row in its file, before any filter."""
        ...

    @property
    def scanned(self) -> bool:
        """Whether text of the row may hold AIS tags."""
        ...


def is_same_sample(row: IndexRow, sample: IndexRow) -> bool:
    """Return whether a row is the sample itself: the same row of the same file, or equal in all but the id columns."""
    if row is sample or (row.file is not None and row.file == sample.file and row.row == sample.row):
        return True
    theirs = sample.columns
    equal = 0
    for name, value in row.columns.items():
        if name not in ID_COLUMNS:
            if name not in theirs or not _equal(value, theirs[name]):
                return False
            equal += 1
    others = sum([name not in ID_COLUMNS for name in theirs])
    return equal == others if equal or others else _equal(row.columns, theirs)


def _equal(a: Any, b: Any) -> bool:
    """Return whether two values of a column are equal. NaN equals NaN, arrays compare as a whole."""
    if a is b:
        return True
    if isinstance(a, (str, int)):
        return bool(a == b)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return len(a) == len(b) and all(key in b and _equal(value, b[key]) for key, value in a.items())
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_equal, a, b))
    if hasattr(a, "shape") or hasattr(b, "shape"):
        return getattr(a, "shape", None) == getattr(b, "shape", None) and bool((a == b).all())
    if isinstance(a, float) and isinstance(b, float) and a != a and b != b:  # noqa: PLR0124  # both are NaN
        return True
    return bool(a == b)
