"""One row of a dataset, with its id and its origin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Union

from mmprompt.errors import RowError
from mmprompt.exact_json import Remark

if TYPE_CHECKING:
    from mmprompt.parts import Message


class Sample(NamedTuple):
    """A row as its file has it, read-only.

    ``columns`` maps column to value. ``id`` keeps its JSON type: the column ``id``, ``index`` or ``question_id``, the
    first that is there and not null, else ``row``. ``file`` is the file as given (None for rows given in Python),
    ``line`` the 1-based line where the row begins (for rows given in Python its 1-based number), ``row`` the 0-based
    number of the row, before any filter and counting rows that cannot be read. ``scanned`` tells whether the format
    is one whose text may hold AIS tags. ``messages`` are those of a chat row. ``remarks`` is what was accepted and is
    worth a report.
    """

    columns: Mapping[str, object]
    id: object
    file: str | None
    line: int | None
    row: int
    scanned: bool
    messages: tuple[Message, ...] | None = None
    remarks: tuple[Remark, ...] = ()

    @property
    def label(self) -> str:
        """The id as text, for messages."""
        return str(self.id)


Row = Union[Sample, RowError]
"""What a dataset yields: a sample, or the error of a row that cannot be read."""


def id_of(columns: Mapping[str, object], row: int) -> object:
    """Return the id of a row: ``id``, ``index`` or ``question_id``, the first that is not null, else ``row``."""
    for name in ("id", "index", "question_id"):
        value = columns.get(name)
        if value is not None:
            return value
    return row
