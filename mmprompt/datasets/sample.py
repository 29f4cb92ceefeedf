"""One row of a dataset, with its id and its origin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar, Union

from mmprompt.errors import NO_COLUMN, MMPromptError, RowError, Where, nearest
from mmprompt.targets.exact_json import Remark

if TYPE_CHECKING:
    from mmprompt.messages import Message

LONGEST_ROW = 1 << 28
"""The most bytes of a row as text: a line of JSON, an element of an array, a record of CSV, a text in a tar file."""

GROUPS = ("category", "l2-category", "subject", "topic", "split")
"""Columns that group rows: scores are told by them, and no model is sent them."""

_E = TypeVar("_E", bound=MMPromptError)


class Sample(NamedTuple):
    """A row as its file has it, read-only.

    ``columns`` maps column to value. ``id`` is that of ``id_of``. ``file`` is the file as given (None for rows given
    in Python), ``line`` the 1-based line where the row begins (for rows given in Python its 1-based number), ``row``
    the 0-based number of the row, before any filter and counting rows that cannot be read. ``scanned`` is true if
    the texts of the format may hold AIS tags. ``messages`` are those of a chat row. ``remarks`` are
    remarks of the reader on the row. ``sent`` names the columns whose content stands in ``messages`` or in another.
    ``folder`` is where its media paths begin, if the files of the dataset lie in several folders.
    """

    columns: Mapping[str, object]
    id: object
    file: str | None
    line: int | None
    row: int
    scanned: bool
    messages: tuple[Message, ...] | None = None
    remarks: tuple[Remark, ...] = ()
    sent: frozenset[str] = frozenset()
    folder: str | None = None

    @property
    def label(self) -> str:
        """The id as text, for messages."""
        return str(self.id)

    def located(self, error: _E) -> _E:
        """Return the error with this row's file, line and id."""
        return error.located(file=self.file, line=self.line, sample=self.label)


def too_long(what: str = "the row") -> RowError:
    """Return the error of a row, or of a part of it, that is longer than ``LONGEST_ROW``."""
    hint = "keep its media in files, or split it into several rows"
    return RowError(f"{what} is longer than {LONGEST_ROW >> 20} MiB", hint, code="MM017")


def no_column(column: str, what: str, columns: Iterable[str]) -> RowError:
    """Return the error of a row that lacks a column; the task or the command may name a wrong one."""
    return RowError(what, nearest(column, columns), Where(column=column, setting=NO_COLUMN), "MM006")


def column_error(column: str | None, what: str, hint: str, code: str) -> RowError:
    """Return the error of a row about one of its columns."""
    return RowError(what, hint, Where(column=column), code)


Row = Union[Sample, RowError]
"""What a dataset yields: a sample, or the error of a row that cannot be read."""


def each(rows: Iterable[Row], change: Callable[[Sample], Row]) -> Iterator[Row]:
    """Yield what ``change`` makes of each sample, or the error that it raises, with the row's place; errors pass."""
    for row in rows:
        if isinstance(row, RowError):
            yield row
            continue
        try:
            made = change(row)
        except MMPromptError as error:
            made = row.located(RowError(error.what, error.hint, error.where, error.code))
        yield made


ID_COLUMNS = ("id", "index", "question_id", "pid", "questionId", "qid")
"""The first of these columns that is not null holds the id. When rows are compared, they do not count."""


def id_of(columns: Mapping[str, object], row: int | None) -> object:
    """Return the id of a row, with its JSON type; its number ``row`` if no column holds an id."""
    for name in ID_COLUMNS:
        value = columns.get(name)
        if value is not None:
            return value
    return row
