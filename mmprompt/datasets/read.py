"""Open a dataset: recognise its format and iterate over its rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from mmprompt.datasets import csv_rows, json_rows, jsonl, mm_custom, openai_chat
from mmprompt.datasets.dataset_file import DatasetFile
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.recognise import binary_kind, recognise
from mmprompt.datasets.row_ids import id_of
from mmprompt.datasets.sample import Row, Sample
from mmprompt.errors import DatasetError, RowError, nearest, shown

Reader = Callable[[DatasetFile, Notes, bool], Iterator[Row]]

_new = tuple.__new__  # half the time of the class, and this runs for every row


def _read_array(source: DatasetFile, notes: Notes, thorough: bool) -> Iterator[Row]:
    return openai_chat.of_rows(json_rows.read(source, notes, thorough))


READERS: dict[str, Reader] = {
    "jsonl": jsonl.read,
    "mm_custom": mm_custom.read,
    "openai": openai_chat.read,
    "csv": csv_rows.read,
    "tsv": partial(csv_rows.read, delimiter="\t", scanned=False),
    "json": _read_array,
}
"""From format to reader: a function that takes a file, collects notes, and yields samples and row errors."""


class Dataset:
    """The rows of a dataset, read one at a time in constant memory.

    Iterating yields a ``Sample`` for each row that can be read and a ``RowError`` for each that cannot. Each iteration
    reads the file again; standard input, pipes and iterators can be read once. ``path`` is the file as given (None for
    rows given in Python). ``root`` is its directory, where relative media paths begin (None for standard input and for
    rows given in Python). ``change`` is applied to each row.
    """

    __slots__ = ("_iterate", "_notes", "change", "format", "path", "root")

    def __init__(
        self, path: str | None, format_name: str, root: str | None, iterate: Callable[[Notes], Iterator[Row]]
    ) -> None:
        self.path = path
        self.format = format_name
        self.root = root
        self.change: Callable[[Row], Row] | None = None
        self._iterate = iterate
        self._notes = Notes()

    def __iter__(self) -> Iterator[Row]:
        """Read from the first row.

        Raises:
            DatasetError: the file as a whole cannot be read, or not again.
        """
        self._notes.clear()
        rows = self._iterate(self._notes)
        return rows if self.change is None else map(self.change, rows)

    def __repr__(self) -> str:
        """Show path and format."""
        return f"Dataset({self.path!r}, format={self.format!r})"

    @property
    def notes(self) -> list[str]:
        """Remarks on the rows that the last iteration has read so far, one line for each kind."""
        return self._notes.texts()


def open_dataset(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002  # the public name
    thorough: bool = False,
) -> Dataset:
    """Open a dataset file.

    Args:
        path: the file; ``-`` is standard input.
        format: one of ``READERS``; by default it is recognised from the content.
        thorough: read JSON lines with Python's ``json`` alone: several times slower, and repeated keys are noted.

    Raises:
        DatasetError: the file is missing, a directory, unreadable or binary, or its format is unknown.
    """
    if format is not None and format not in READERS:
        raise DatasetError(f"unknown format {shown(format)}", nearest(format, READERS))
    source = DatasetFile(path)
    kind = binary_kind(source.head)
    if kind is not None:
        raise DatasetError(f"{shown(source.name)} is a {kind} file", "give a dataset as UTF-8 text")
    if format is None:
        try:
            format = recognise(source.head, source.name)  # noqa: A001  # the public name
        except DatasetError as error:
            raise DatasetError(error.what, f"{error.hint}; formats: {', '.join(READERS)}") from None
    if format == "json":
        json_rows.check_array(source.head)
    source.shorten()
    return Dataset(source.name, format, source.root, partial(_read, READERS[format], source, thorough))


def _read(reader: Reader, source: DatasetFile, thorough: bool, notes: Notes) -> Iterator[Row]:
    return reader(source, notes, thorough)


def rows_dataset(rows: Iterable[Mapping[str, object]]) -> Dataset:
    """Return the dataset of rows given in Python. Values may also be bytes, images, lists and segments.

    If the first row is a chat, all of them are read as chats. A row that is not a mapping from names to values yields
    a ``RowError``. An iterator can be read once.

    Raises:
        DatasetError: ``rows`` is a mapping, or not iterable.
    """
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        raise DatasetError(f"rows are given as {type(rows).__name__}", "give a list or another iterable of mappings")
    return Dataset(None, "rows", None, partial(_read_rows, _Once(rows)))


class _Once:
    """An iterable of rows, with a clear error if it is an iterator that is read again."""

    def __init__(self, rows: Iterable[Mapping[str, object]]) -> None:
        self._rows = rows
        self._spent = False

    def __iter__(self) -> Iterator[object]:
        iterator = iter(self._rows)
        if iterator is self._rows:
            if self._spent:
                raise DatasetError("the rows are an iterator, which can be read only once", "give a list")
            self._spent = True
        return iterator


def _read_rows(rows: _Once, notes: Notes) -> Iterator[Row]:
    del notes  # rows in Python are what they are
    return openai_chat.of_rows(_python_rows(rows))


def _python_rows(rows: _Once) -> Iterator[Row]:
    for row, columns in enumerate(rows):
        if not isinstance(columns, Mapping):  # what callers give is not checked by a type checker
            yield RowError(
                f"a row is a mapping, this is {type(columns).__name__}", "give a mapping of column to value"
            ).located(line=row + 1)
            continue
        made = columns if type(columns) is dict else dict(columns)
        try:
            "".join(made)  # the quickest way to see that all names are text
        except TypeError:
            yield RowError("a column name is not a string", "name columns by strings").located(line=row + 1)
        else:
            yield _new(Sample, (made, id_of(made, row), None, row + 1, row, True, None, ()))
