"""Open a dataset: recognise its format and iterate over its rows."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from mmprompt.datasets import openai_chat
from mmprompt.datasets.column_roles import check_roles
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.parts import FORMATS, Part, Settings, parts_of, rows_of
from mmprompt.datasets.python_rows import Once, read_rows
from mmprompt.datasets.readers.join import Missing, join_table, joined, table_of
from mmprompt.datasets.sample import Row, Sample
from mmprompt.datasets.span import Shard, Span, rows_from
from mmprompt.datasets.store_url import StoreURL
from mmprompt.errors import DatasetError, nearest, shown
from mmprompt.errors.findings import Note
from mmprompt.targets.exact_json import Remark


class Dataset:
    """The rows of a dataset, read one at a time in constant memory.

    Iterating yields a ``Sample`` for each row that can be read and a ``RowError`` for each that cannot. Each iteration
    reads the file again; standard input, pipes and iterators can be read once. ``path`` is the file as given (None for
    rows given in Python). ``root`` is its directory, where relative media paths begin (None for standard input and for
    rows given in Python); the media of files in several folders begin at their own, and ``roots`` holds all of them.
    ``change`` is applied to each row. ``first`` is the 0-based number of the first row: 0 but for a part of a dataset.
    """

    __slots__ = ("_given", "_iterate", "_notes", "change", "first", "format", "path", "root", "roots")

    def __init__(
        self,
        path: str | None,
        format_name: str,
        roots: Sequence[str],
        iterate: Callable[[Notes], Iterator[Row]],
        given: Sequence[str] = (),
    ) -> None:
        self.path = path
        self._given = given
        self.format = format_name
        self.root = roots[0] if roots else None
        self.roots = tuple(roots)
        self.first = 0
        self.change: Callable[[Row], Row] | None = None
        self._iterate = iterate
        self._notes = Notes()

    def __iter__(self) -> Iterator[Row]:
        """Read from the first row.

        Raises:
            DatasetError: the file as a whole cannot be read, or not again.
        """
        self._notes.clear()
        if self.change is not None:
            return map(self.change, self._iterate(self._notes))
        return self._iterate(self._notes)

    def chosen(self, rows: slice) -> Iterator[Row]:
        """Read the rows whose numbers are in a range, of those that there are from ``first`` on."""
        own = rows_from(rows, self.first)
        start, stop = [at if at is None else max(at - self.first, 0) for at in (own.start, own.stop)]
        return islice(self, start, stop, own.step)

    @property
    def files(self) -> list[str]:
        """The files that hold the rows and what is joined to them, as far as they have names."""
        if isinstance(self._iterate, partial) and self._iterate.func is _read:
            parts, asked = self._iterate.args
            return [*[file for part in parts for file in part.files], *[name.rpartition(":")[0] for name in asked.join]]
        return [] if self.path is None else [self.path]

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of ``dataset_task`` that were given, files with their whole names; none that is not needed.

        ``path`` is needed if it names another than ``path``, such as the folder in which a split was found.
        """
        if not (isinstance(self._iterate, partial) and self._iterate.func is _read):
            return {}
        asked = self._iterate.args[1]
        join = [os.path.abspath(name) for name in asked.join]
        given = {"format": asked.format, "map_columns": dict(asked.columns or {}), "key": asked.key, "join": join}
        named = any(name == "-" or isinstance(name, StoreURL) for name in (self.path, *self._given))
        paths = [] if named else [os.path.abspath(name) for name in self._given]
        given |= {"path": paths if paths != [os.path.abspath(str(self.path))] else []}
        given |= {"split": asked.split, "encoding": asked.encoding}
        return {name: value for name, value in given.items() if value}

    @property
    def reads_once(self) -> bool:
        """Whether the rows can be read once only: those of standard input, of a pipe, or of an iterator."""
        if self.path is not None:
            return not all(_is_there(name) for name in self.files)
        return (
            isinstance(self._iterate, partial)
            and isinstance(self._iterate.args[0], Once)
            and self._iterate.args[0].spends
        )

    def __repr__(self) -> str:
        """Show path and format."""
        return f"Dataset({self.path!r}, format={self.format!r})"

    def read_thoroughly(self) -> None:
        """Read JSON lines with Python's ``json`` alone from now on: slower, and repeated keys are noted."""
        if isinstance(self._iterate, partial) and self._iterate.func is _read:
            parts, asked = self._iterate.args
            self._iterate = partial(_read, parts, asked._replace(thorough=True), **self._iterate.keywords)

    @property
    def parts(self) -> Sequence[Part]:
        """The files whose rows can be read in spans; none if one of them has to be read whole."""
        if isinstance(self._iterate, partial) and self._iterate.func is _read:
            parts, asked = self._iterate.args
            return parts if not asked.join and all(part.can_be_cut for part in parts) else ()
        return ()

    def over(self, shard: Shard) -> Dataset:
        """Return the part of this dataset that a shard says. Its rows have the numbers that they have here."""
        iterate = self._iterate
        if shard["rows"] is not None and isinstance(self._iterate, partial):
            parts, asked = self._iterate.args
            span = Span(shard["start"], shard["end"], shard["line"], shard["row"])
            if shard["part"] >= len(parts) or (span.end is not None and span.end < span.start):
                what = f"a shard of {shown(self.path or '')} names a part that the dataset does not have"
                raise DatasetError(what, "remove the work folder to begin anew")
            own = parts[shard["part"]]
            own = own._replace(source=own.source.part(span))
            numbered_from = shard["first"] if len(parts) > 1 else None
            iterate = partial(_read, (own,), asked, first=numbered_from, chats=shard["chats"])
        part = Dataset(self.path, self.format, self.roots, iterate)
        part.change, part.first = copy.copy(self.change), shard["first"]
        return part

    @property
    def remarks(self) -> Notes:
        """Remarks on the rows that the last iteration has read so far."""
        return self._notes

    @property
    def notes(self) -> list[Note]:
        """Remarks on the rows that the last iteration has read so far, one line for each kind."""
        return self._notes.texts()


def _is_there(name: str) -> bool:
    return isinstance(name, StoreURL) or os.path.isfile(name) or os.path.isdir(name)


def open_dataset(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,  # noqa: A002  # the public name
    thorough: bool = False,
    key: str | None = None,
    columns: Mapping[str, str] | None = None,
    join: Sequence[str] = (),
    split: str | None = None,
    encoding: str | None = None,
    templates: bool = False,
    layouts: bool = True,
) -> Dataset:
    """Open a dataset: a file, a folder, a pattern such as ``data/*.parquet``, or a list of files.

    Args:
        path: where the rows are; ``-`` is standard input.
        format: one of ``FORMATS``; by default it is recognised from the content.
        thorough: read JSON lines with Python's ``json`` alone: several times slower, and repeated keys are noted.
        key: the key of a JSON object under which the rows stand.
        columns: from column to role, as ``ROLES`` of ``column_roles`` lists them.
        join: files of further columns, each as ``FILE:COLUMN``; rows with an equal COLUMN belong together.
        split: which split of a folder, or of rows with a column ``split``.
        encoding: the encoding of text that is not UTF-8.
        templates: give mapped media also the names ``image``, ``audio`` and ``video``, which templates use.
        layouts: recognise published layouts such as MMMU's; False leaves the columns as they are.

    Raises:
        DatasetError: a file is missing, named twice, unreadable or binary, its format is unknown, or a setting does not
            fit.
    """
    asked = Settings(format, thorough, key, columns, tuple(join), split, encoding, templates, layouts)
    if format is not None and format not in FORMATS:
        raise DatasetError(f"unknown format {shown(format)}", nearest(format, FORMATS))
    check_roles(columns or {})
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    parts, in_folder = parts_of([os.fspath(p) for p in paths], asked)
    roots = {os.path.abspath(part.source.root): part.source.root for part in parts if part.source.root is not None}
    if in_folder is None and roots and any(part.source.root is None for part in parts):
        what = "standard input or a pipe stands among files, so relative media paths would begin at different places"
        raise DatasetError(what, "give it alone")
    if in_folder is None and len(roots) > 1:
        parts = [part._replace(own_folder=True) for part in parts]
    formats = dict.fromkeys(part.format for part in parts)
    if len(formats) > 1:
        raise DatasetError(f"the files are of different formats: {', '.join(formats)}", "give files of one format")
    first = parts[0]
    name = first.source.name if len(parts) == 1 else os.fspath(paths[0])
    folders = list(roots.values()) if in_folder is None else [in_folder]
    return Dataset(name, format or first.format, folders, partial(_read, parts, asked), [os.fspath(p) for p in paths])


def _read(
    parts: Sequence[Part], asked: Settings, notes: Notes, *, first: int | None = None, chats: bool | None = None
) -> Iterator[Row]:
    """Return the rows of files. ``first`` is the number of the first row, if the dataset has more files than these.

    ``chats`` says whether the rows are chats, for those after the first.
    """
    join = partial(_joined, asked=asked, notes=notes) if asked.join else None
    several = len(parts) > 1 or first is not None
    rows = _numbered(parts, asked, notes, join, first or 0) if several else rows_of(parts[0], asked, notes, join)
    if parts[0].reader in ("json", "parquet", "arrow", "webdataset") and parts[0].layout is None:
        if chats is None:
            return openai_chat.of_rows(rows)
        return openai_chat.chats(rows) if chats else rows
    return rows


Join = Callable[[Iterator[Row]], Iterator[Row]]


def _joined(rows: Iterator[Row], *, asked: Settings, notes: Notes) -> Iterator[Row]:
    for name in asked.join:
        rows = _with_partners(rows, name, asked, notes)
    return rows


def _numbered(parts: Sequence[Part], asked: Settings, notes: Notes, join: Join | None, number: int) -> Iterator[Row]:
    """Yield the rows of several files, numbered on from ``number``."""
    for part in parts:
        for row in rows_of(part, asked, notes, join):
            if isinstance(row, Sample):
                own = row.id != row.row or type(row.id) is not int or any(v == row.id for v in row.columns.values())
                folder = part.source.root if part.own_folder else None
                row = row._replace(row=number, id=row.id if own else number, folder=folder)  # noqa: PLW2901  # the row, numbered on
            number += 1
            yield row


def _with_partners(rows: Iterable[Row], name: str, asked: Settings, notes: Notes) -> Iterator[Row]:
    file, colon, column = name.rpartition(":")
    if not colon or not file or not column:
        raise DatasetError(f"--join {name} is not of the form FILE:COLUMN", "write --join FILE:COLUMN")
    others = open_dataset(file, key=None if asked.format else asked.key, encoding=asked.encoding)
    missing = Missing(file)
    with join_table() as table:
        table_of(others, column, table, file)
        yield from joined(rows, column, table, missing)
    notes.add([Remark(f"join {name} {n}", None, text, "MM024") for n, text in enumerate(missing.texts())], file, None)


def rows_dataset(
    rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str] | None = None, *, layouts: bool = True
) -> Dataset:
    """Return the dataset of rows given in Python. Values may also be bytes, images, lists and segments.

    If the first row is a chat, or has a published layout such as MMMU's, all rows are read in the same way; without
    ``layouts`` the columns stay as they are. A row that
    is not a mapping from names to values yields a ``RowError``. An iterator can be read once. A ``datasets`` Dataset
    is read without decoding its media.

    Raises:
        DatasetError: ``rows`` is a mapping, or not iterable.
    """
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        raise DatasetError(f"rows are given as {type(rows).__name__}", "give a list or another iterable of mappings")
    check_roles(columns or {})
    return Dataset(None, "rows", (), read_rows(rows, columns or {}, layouts=layouts))
