"""Remarks on rows that a reader accepted, collected in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mmprompt.errors import Where
from mmprompt.errors.findings import Note
from mmprompt.targets.exact_json import Remark

_KINDS = 20


class Notes:
    """Remarks on the rows of a dataset: of each kind the first one with its place, and how many more there are."""

    __slots__ = ("_first", "_more")

    def __init__(self) -> None:
        self._first: dict[str, Note] = {}
        self._more: dict[str, int] = {}

    def add(self, remarks: Iterable[Remark], file: str | None, line: int | None) -> None:
        """Note ``remarks`` on the row at ``file:line``."""
        for kind, column, message, code in remarks:
            if kind in self._first:
                self._more[kind] = self._more.get(kind, 0) + 1
            elif len(self._first) < _KINDS:
                self._first[kind] = Note(code, message, where=Where(file, line, column))

    @property
    def state(self) -> list[list[Any]]:
        """The remarks as plain data, for ``add_state``."""
        return [[kind, n.code, n.what, list(n.where), self._more.get(kind, 0)] for kind, n in self._first.items()]

    def add_state(self, state: Iterable[list[Any]]) -> None:
        """Add the remarks on the rows after those that are noted."""
        for kind, code, what, place, more in state:
            if kind in self._first:
                self._more[kind] = self._more.get(kind, 0) + 1 + more
            elif len(self._first) < _KINDS:
                self._first[kind] = Note(code, what, where=Where(*place))
                if more:
                    self._more[kind] = more

    def clear(self) -> None:
        """Forget everything, at the start of another reading."""
        self._first.clear()
        self._more.clear()

    def texts(self) -> list[Note]:
        """Return one note for each kind, in the order of their first places."""
        return [
            Note(note.code, f"{note.what} (and {self._more[kind]} more)", where=note.where)
            if kind in self._more
            else note
            for kind, note in self._first.items()
        ]
