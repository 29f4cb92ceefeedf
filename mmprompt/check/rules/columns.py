"""Rules on the columns of all rows: what nearly all rows have and a few lack, and ids."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from mmprompt.check.rule import Hit, dataset_rule
from mmprompt.check.store import Store
from mmprompt.datasets.choices import LISTS
from mmprompt.datasets.media_columns import media_column
from mmprompt.datasets.sample import ID_COLUMNS
from mmprompt.errors import shown

FEW = 20
"""Fewer rows than these say nothing about what nearly all rows have."""

NEARLY_ALL = 0.95
"""The share of rows that counts as nearly all. A column that 6 of 100 rows lack may be optional."""

_ALL_BUT_ODD = 0.97
"""The share of rows with choices beyond which the others are odd. Some datasets ask 6 of 100 questions without."""

_SHAPES = 1000
"""Most shapes of rows that are compared, the most frequent ones: memory does not grow with odd rows."""

_EMPTY = ("null", "blank")
_CHOICE = re.compile("[A-Z]|choice_[a-z]")
_A_KIND = {
    "text": "a text",
    "number": "a number",
    "true or false": "true or false",
    "list": "a list",
    "object": "an object",
    "other": "a value of another type",
}


class Shapes:
    """The shapes of the rows of a store: which kinds of values the columns have, and in how many rows."""

    def __init__(self, store: Store) -> None:
        self._store = store
        found = store.query("SELECT shape, COUNT(*) AS n FROM samples GROUP BY shape ORDER BY n DESC LIMIT ?", _SHAPES)
        self._shapes: list[tuple[str, dict[str, str], int]] = [(text, json.loads(text), n) for text, n in found]
        self.rows = sum([count for _, _, count in self._shapes])
        self.kinds: dict[str, Counter[str]] = {}
        for _, shape, count in self._shapes:
            for column, kind in shape.items():
                self.kinds.setdefault(column, Counter())[kind] += count

    def filled(self, column: str) -> int:
        """Return how many rows have a value in a column."""
        return sum([count for kind, count in self.kinds.get(column, {}).items() if kind not in _EMPTY])

    def where(self, holds: Callable[[Mapping[str, str]], bool]) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield the rows whose shape ``holds``, each with its shape."""
        for text, shape, _ in self._shapes:
            if holds(shape):
                for (row,) in self._store.query("SELECT row FROM samples WHERE shape = ? ORDER BY row", text):
                    yield row, shape


@dataset_rule("MM019")
def uneven_columns(store: Store) -> Iterator[Hit]:
    """A few rows lack a column that nearly all have."""
    shapes = Shapes(store)
    if shapes.rows < FEW:
        return
    for column in LISTS:
        have = shapes.filled(column)
        if _ALL_BUT_ODD * shapes.rows <= have < shapes.rows:
            for row, _ in shapes.where(partial(_is_empty, column)):
                what = f"the row has no {shown(column)}, which {have} of {shapes.rows} rows have"
                yield Hit(what, "give its choices, or drop the row", row=row)
    for column, kinds in shapes.kinds.items():
        have = sum(kinds.values())
        if NEARLY_ALL * shapes.rows <= have < shapes.rows and not _is_told_elsewhere(column, store.output_column):
            for row, _ in shapes.where(partial(_lacks, column)):
                what = f"the row has no {shown(column)}, which {have} of {shapes.rows} rows have"
                yield Hit(what, "add the column; give null where it holds nothing", row=row)


def _is_empty(column: str, shape: Mapping[str, str]) -> bool:
    return shape.get(column, "null") in _EMPTY


def _lacks(column: str, shape: Mapping[str, str]) -> bool:
    return column not in shape


def _is_told_elsewhere(column: str, output_column: str) -> bool:
    """Return whether another rule tells rows without this column, or rows may well lack it."""
    own = (*ID_COLUMNS, output_column, "question", "content", "hint", *LISTS)
    return column in own or media_column(column) is not None or _CHOICE.fullmatch(column) is not None


@dataset_rule("MM007")
def wrong_type(store: Store) -> Iterator[Hit]:
    """A value of another type than nearly all values of its column."""
    shapes = Shapes(store)
    for column, kinds in shapes.kinds.items():
        filled = {kind: count for kind, count in kinds.items() if kind not in _EMPTY}
        total = sum(filled.values())
        if total < FEW or media_column(column) is not None or "medium" in filled:
            continue
        usual = max(filled, key=filled.__getitem__)
        if not NEARLY_ALL * total <= filled[usual] < total:
            continue
        for row, shape in shapes.where(partial(_differs, column, usual)):
            what = f"{shown(column)} holds {_A_KIND[shape[column]]}, and {filled[usual]} of {total} rows hold"
            yield Hit(f"{what} {_A_KIND[usual]}", f"write it as {_A_KIND[usual]}", column, row=row)


def _differs(column: str, usual: str, shape: Mapping[str, str]) -> bool:
    return shape.get(column, usual) not in (usual, *_EMPTY)


@dataset_rule("MM016")
def missing_id(store: Store) -> Iterator[Hit]:
    """A few rows have no id."""
    shapes = Shapes(store)
    column = next((name for name in ID_COLUMNS if 2 * shapes.filled(name) > shapes.rows), None)
    if column is None or shapes.filled(column) == shapes.rows:
        return
    for row, shape in shapes.where(_has_no_id):
        what = f"the row has no {shown(column)}" if column not in shape else f"{shown(column)} is {shape[column]}"
        yield Hit(f"{what}, so its number stands in", "give each row its own id", column, row=row)


def _has_no_id(shape: Mapping[str, str]) -> bool:
    return all(shape.get(name, "null") in _EMPTY for name in ID_COLUMNS)


@dataset_rule("MM009")
def repeated_id(store: Store) -> Iterator[Hit]:
    """Two rows have one id."""
    again = store.query(
        "SELECT later.row, later.id, later.shape, first.file, first.line, first.row FROM"
        " (SELECT MIN(row) AS row, id FROM samples GROUP BY id HAVING COUNT(*) > 1) AS twin"
        " JOIN samples AS later ON later.id = twin.id AND later.row > twin.row"
        " JOIN samples AS first ON first.row = twin.row ORDER BY later.row"
    )
    for row, name, shape, *first in again:
        kinds = json.loads(shape)
        column = next((key for key in ID_COLUMNS if kinds.get(key, "null") not in _EMPTY), None)
        if column is not None:
            what = f"the id {shown(json.loads(name))} is also that of {place_of_row(*first)}"
            yield Hit(what, "give each row its own id", column, row=row)


def place_of_row(file: str | None, line: int | None, row: int) -> str:
    """Return the place of a row in words."""
    return f"{file}, row {row}" if line is None else f"{file}:{line}"


@dataset_rule("MM014")
def no_rows(store: Store) -> Iterator[Hit]:
    """A dataset without rows."""
    if not store.progress.items:
        yield Hit("the dataset has no row", "name another file, or another split")


@dataset_rule("MM701")
def missing_answer(store: Store) -> Iterator[Hit]:
    """Rows without an answer, where there is a column for it; one finding if no row has one."""
    shapes = Shapes(store)
    column = store.output_column
    if column not in shapes.kinds:
        return
    if shapes.rows > 1 and not shapes.filled(column):
        what = f"{shown(column)} is null or blank in all {shapes.rows} rows"
        yield Hit(what, "give the answers, if replies are to be scored", column)
        return
    for row, shape in shapes.where(lambda shape: shape.get(column, "null") in _EMPTY):
        what = f"{shown(column)} is {shape[column]}" if column in shape else f"the row has no {shown(column)}"
        yield Hit(what, "give the answer, or drop the row", column, row=row)
