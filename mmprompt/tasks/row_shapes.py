"""Rows that are alike to those who look for what is worth a note: the same columns, and ordinary values in them.

An ordinary text is not blank, not how programs write a missing value, no list written as text, and without ``<``. What
is noted on rows of ordinary values follows from their columns and types, so it is found out once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable
from typing import Any, NamedTuple

from mmprompt.datasets.choices import MISSING
from mmprompt.datasets.media_columns import media_column
from mmprompt.datasets.sample import Sample
from mmprompt.messages import TextPart
from mmprompt.tasks.odd_values import RowNote
from mmprompt.tasks.unsent import Groups, kinds_in
from mmprompt.templates.sample_view import CONTENT

_WORDS = "|".join(map(re.escape, sorted(MISSING)))
_odd_text = re.compile(rf"\0(?:[\s\[\0]|\Z|(?:{_WORDS})(?!\w))").search
"""Finds a text that is not ordinary among texts, each of which has a NUL before it."""

_TEXT = frozenset({str})
_PLAIN = frozenset({str, int, bool, type(None)})
_CHAT = frozenset(("messages", "body"))


class Noted(NamedTuple):
    """What is noted on a row: the notes, the columns that are not sent, and the media columns that hold nothing."""

    notes: list[RowNote]
    left: list[str]
    lacking: list[str]


def likeness(sample: Sample) -> Hashable:
    """Return what a row has in common with others, beside its columns, by which notes on it are decided.

    None if one of its values is not ordinary.
    """
    columns = sample.columns
    values: Any = columns.values()
    like: Hashable = str
    if sample.messages is not None or CONTENT in columns:
        values, like = _texts_beside(sample)
    try:
        texts = "\0".join(("", *values))
    except TypeError:  # not all of them are texts
        values, like = _texts_beside(sample)
        texts = "\0".join(("", *values))
    return None if "<" in texts or _odd_text(texts) else like


def _texts_beside(sample: Sample) -> tuple[list[str], Hashable]:
    """Return the texts of a row beside its messages and its ``content``, and its likeness; "<" for one without it."""
    columns = sample.columns
    found: list[str] = []
    held = _CHAT | sample.sent if sample.messages is not None else ()
    for name, value in columns.items():
        if name not in held and name != CONTENT and not _add_texts(name, value, found):
            return ["<"], None
    types = tuple(map(type, columns.values())), sample.sent
    if sample.messages is not None:
        media = any(type(part) is not TextPart for message in sample.messages for part in message.parts)
        last = sample.messages[-1] if sample.messages else None
        return found, (types, media, last is not None and last.role == "assistant" and bool(last.parts))
    return found, (types, kinds_in(columns[CONTENT], sample.scanned) if CONTENT in columns else None)


def _add_texts(name: str, value: Any, found: list[str]) -> bool:
    """Add the texts of a value; return False for a value that is not ordinary, whatever its texts are."""
    kind = type(value)
    if kind is str:
        found.append(value)
    elif kind is list:
        if not value or not _TEXT.issuperset(map(type, value)):
            return False
        found += value
    elif kind is dict:  # a picture of Hugging Face's
        return bool(media_column(name) and value.get("bytes"))
    elif kind is float:
        return bool(value == value)  # noqa: PLR0124  # only NaN differs from itself
    else:
        return kind in _PLAIN
    return True


class Shape:
    """The rows with the same columns.

    ``count`` is how many they are, and ``empty`` how many of them have no media in each of the ``media`` columns.
    ``unplaced`` are the columns that the template does not name, each with whether its name is that of media.
    ``looks``: values may be worth a note. ``texts`` are columns in which a tag may be misspelt. ``valued``: the notes,
    but for those on tags, depend on values. ``settled`` is what is noted on ordinary rows, by their ``likeness``; None
    if that depends on the row.
    """

    __slots__ = ("count", "empty", "looks", "media", "settled", "texts", "unplaced", "valued")

    def __init__(self, media: Groups, unplaced: list[tuple[str, bool]], texts: list[str], looks: bool) -> None:
        self.count = 0
        self.empty: Counter[str] = Counter()
        self.media = media
        self.unplaced = unplaced
        self.texts = texts
        self.settled: dict[Hashable, Noted | None] = {}
        self.looks = looks
        self.valued = bool(media or looks or any(is_named for _, is_named in unplaced))
