"""Rows that are alike to those who look for what is worth a note: the same columns, and ordinary values in them.

An ordinary value is a text that is not blank, not how programs write a missing value, no list written as text, and
without ``<``. What is noted on rows of ordinary values follows from their columns, so it is found out once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from operator import methodcaller
from typing import Any, NamedTuple

from mmprompt.datasets.choices import MISSING
from mmprompt.datasets.line_columns import LineColumns, LineShape
from mmprompt.datasets.sample import ID_COLUMNS
from mmprompt.tasks.odd_values import RowNote
from mmprompt.tasks.unsent import Groups

_WORDS = "|".join(map(re.escape, sorted(MISSING)))
_odd_text = re.compile(rf"[\s\[]|\Z|(?:{_WORDS})(?!\w)").match
_odd_bytes = re.compile(
    rb"[\s\[\\]|\Z|(?:%b)(?!\w)|\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8a\xa8\xa9\xaf]|\xe2\x81\x9f|\xe3\x80\x80"
    % _WORDS.encode()
).match
"""The same for the texts of a line of JSON, in UTF-8. A text that begins with an escape may be blank."""

_bracket = methodcaller("__contains__", "<")
_TEXT = frozenset({str})


class Noted(NamedTuple):
    """What is noted on a row: the notes, the columns that are not sent, and the media columns that hold nothing."""

    notes: list[RowNote]
    left: list[str]
    lacking: list[str]


def is_ordinary(columns: Mapping[str, object]) -> bool:
    """Return whether all values of a row are ordinary; its id may be a whole number."""
    if type(columns) is LineColumns:
        texts = columns.match.groups()
        return not any(map(_odd_bytes, texts)) and b"<" not in b"".join(texts)
    values: Any = columns.values()
    if not _TEXT.issuperset(map(type, values)):
        values = [value for name, value in columns.items() if type(value) is not int or name not in ID_COLUMNS]
        if not _TEXT.issuperset(map(type, values)):
            return False
    return not any(map(_odd_text, values)) and not any(map(_bracket, values))


class Shape:
    """The rows with the same columns.

    ``count`` is how many they are, and ``empty`` how many of them have no media in each of the ``media`` columns.
    ``unplaced`` are the columns that the template does not name, each with whether its name is that of media.
    ``looks``: values may be worth a note. ``texts`` are columns in which a tag may be misspelt. ``valued``: the notes,
    but for those on tags, depend on values. ``settled`` is what is noted on ordinary rows, by the shape of their line;
    None if that depends on the row.
    """

    __slots__ = ("count", "empty", "looks", "media", "settled", "texts", "unplaced", "valued")

    def __init__(self, media: Groups, unplaced: list[tuple[str, bool]], texts: list[str], looks: bool) -> None:
        self.count = 0
        self.empty: Counter[str] = Counter()
        self.media = media
        self.unplaced = unplaced
        self.texts = texts
        self.settled: dict[int, tuple[LineShape | None, Noted | None]] = {}
        self.looks = looks
        self.valued = bool(media or looks or any(is_named for _, is_named in unplaced))

    def is_counted_alone(self, line: LineShape) -> bool:
        """Return whether rows that are lines of this shape are worth no look at their values."""
        return not self.valued and not line.free(self.texts)
