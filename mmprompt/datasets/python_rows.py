"""Rows given in Python: mappings, a ``Dataset`` of the package ``datasets``, or a pandas frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from mmprompt.datasets import openai_chat
from mmprompt.datasets.column_roles import with_roles
from mmprompt.datasets.layouts import recognised
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.sample import Row, Sample, id_of
from mmprompt.errors import DatasetError, RowError

_BATCH = 64
_NONE: frozenset[str] = frozenset()
_new = tuple.__new__  # half the time of the class, and this runs for every row


class Once:
    """An iterable of rows, with a clear error if it is an iterator that is read again."""

    def __init__(self, rows: Iterable[Mapping[str, object]]) -> None:
        self._rows = rows
        self._spent = False

    @property
    def spends(self) -> bool:
        """Whether the rows are an iterator, of which a second reading fails."""
        return isinstance(self._rows, Iterator)

    def __iter__(self) -> Iterator[object]:
        iterator = iter(self._rows)
        if iterator is self._rows:
            if self._spent:
                raise DatasetError("the rows are an iterator, which can be read only once", "give a list")
            self._spent = True
        return iterator


def read_rows(
    rows: Iterable[Mapping[str, object]], columns: Mapping[str, str], *, layouts: bool = True
) -> Callable[[Notes], Iterator[Row]]:
    """Return the function that iterates over rows given in Python.

    ``columns`` maps column to role. Without ``layouts`` no published layout is recognised.
    """
    return partial(_read, Once(_mappings(rows)), columns, layouts)


def _read(rows: Once, columns: Mapping[str, str], layouts: bool, notes: Notes) -> Iterator[Row]:
    read = _python_rows(rows)
    if columns:
        read = with_roles(read, columns, templates=True)
    return openai_chat.of_rows(recognised(read, notes) if layouts else read)


def _python_rows(rows: Once) -> Iterator[Row]:
    for row, columns in enumerate(rows):
        if not isinstance(columns, Mapping):  # what callers give is not checked by a type checker
            yield RowError(
                f"a row must be a mapping, and this one is {type(columns).__name__}",
                "give a mapping of column to value",
                code="MM007",
            ).located(line=row + 1)
            continue
        made = columns if type(columns) is dict else dict(columns)
        try:
            "".join(made)  # the quickest way to see that all names are text
        except TypeError:
            yield RowError("a column name is not a string", "name columns by strings", code="MM007").located(
                line=row + 1
            )
        else:
            yield _new(Sample, (made, id_of(made, row), None, row + 1, row, True, None, (), _NONE, None))


class _HubRows:
    """The rows of a ``datasets`` Dataset, with media as the bytes or paths that it holds."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __iter__(self) -> Iterator[Mapping[str, object]]:
        for batch in self._dataset.with_format("arrow").iter(_BATCH):
            yield from batch.to_pylist()


class _FrameRows:
    """The rows of a pandas frame, whose own iteration gives the names of its columns."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __iter__(self) -> Iterator[Mapping[str, object]]:
        names = list(self._frame.columns)
        for values in self._frame.itertuples(index=False, name=None):
            yield dict(zip(names, values, strict=True))


def _mappings(rows: Iterable[Mapping[str, object]]) -> Iterable[Mapping[str, object]]:
    """Return rows as they are; those of a ``datasets`` Dataset without decoding, which would lose the bytes."""
    package = type(rows).__module__.partition(".")[0]
    if package == "datasets" and hasattr(rows, "with_format"):
        return _HubRows(rows)
    return _FrameRows(rows) if package == "pandas" and hasattr(rows, "itertuples") else rows
