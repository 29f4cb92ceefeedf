"""Open a dataset: recognise its format and iterate over its rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from mmprompt.datasets import csv_rows, json_rows, jsonl, mm_custom, openai_chat
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.recognise import binary_kind, recognise
from mmprompt.datasets.row_ids import id_of
from mmprompt.datasets.sample import Row, Sample
from mmprompt.datasets.source import Source
from mmprompt.errors import DatasetError, RowError, nearest, shown

Reader = Callable[[Source, Notes, bool], Iterator[Row]]

_new = tuple.__new__  # half the time of the class, and this runs for every row


def _read_array(source: Source, notes: Notes, thorough: bool) -> Iterator[Row]:
    return openai_chat.of_rows(json_rows.read(source, notes, thorough))


READERS: dict[str, Reader] = {
    "jsonl": jsonl.read,
    "mm_custom": mm_custom.read,
    "openai": openai_chat.read,
    "csv": csv_rows.read,
    "tsv": partial(csv_rows.read, delimiter="\t", scanned=False),
    "json": _read_array,
}
"""Format to reader: what takes a source, collects notes and yields samples and row errors."""


class Dataset:
    """Rows that are read as they are asked for, in constant memory.

    Iterating yields a ``Sample`` for each row and a ``RowError`` for each that cannot be read; each iteration reads
    the file again (standard input, pipes and iterators once). ``path`` is the file as given and ``root`` its directory,
    where its media paths start; both are None for rows given in Python, ``root`` for standard input too.
    """

    __slots__ = ("_iterate", "_notes", "format", "path", "root")

    def __init__(
        self, path: str | None, format_name: str, root: str | None, iterate: Callable[[Notes], Iterator[Row]]
    ) -> None:
        self.path = path
        self.format = format_name
        self.root = root
        self._iterate = iterate
        self._notes = Notes()

    def __iter__(self) -> Iterator[Row]:
        """Read from the first row.

        Raises:
            DatasetError: the file as a whole cannot be read, or not again.
        """
        self._notes.clear()
        return self._iterate(self._notes)

    def __repr__(self) -> str:
        """Show path and format."""
        return f"Dataset({self.path!r}, format={self.format!r})"

    @property
    def notes(self) -> list[str]:
        """What the last iteration accepted so far although it is worth a report, one line for each kind."""
        return self._notes.texts()


def open_dataset(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002  # the public name
    thorough: bool = False,
) -> Dataset:
    """Return the dataset in a file (``-`` is standard input), its format recognised from content unless given.

    ``thorough`` reads JSON lines by Python's ``json`` alone, which takes several times as long and notes repeated keys.

    Raises:
        DatasetError: the file is missing, a directory, unreadable or binary, or its format unknown.
    """
    if format is not None and format not in READERS:
        raise DatasetError(f"unknown format {shown(format)}", nearest(format, READERS))
    source = Source(path)
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


def _read(reader: Reader, source: Source, thorough: bool, notes: Notes) -> Iterator[Row]:
    return reader(source, notes, thorough)


def rows_dataset(rows: Iterable[Mapping[str, object]]) -> Dataset:
    """Return the dataset of rows given in Python; values may be bytes, images, lists and segments as well.

    They are chats if the first that is a row is one, as those of a file.
    A row that is no mapping of names to values is a ``RowError`` when its turn comes. An iterator can be read once.
    """
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        raise DatasetError(f"rows are given as {type(rows).__name__}", "give a list or another iterable of mappings")
    return Dataset(None, "rows", None, partial(_read_rows, _Once(rows)))


class _Once:
    """An iterable of rows that says so when it is an iterator and was used up."""

    def __init__(self, rows: Iterable[Mapping[str, object]]) -> None:
        self._rows = rows
        self._spent = False

    def __iter__(self) -> Iterator[object]:
        iterator = iter(self._rows)
        if iterator is self._rows:
            if self._spent:
                raise DatasetError("the rows are an iterator, which can be read once only", "give a list")
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
