"""The choices of a multiple-choice row."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from string import ascii_lowercase, ascii_uppercase

from mmprompt.datasets.list_cells import list_of_cell

_LISTS = ("options", "choices", "candidates")
_NAMES = frozenset((*_LISTS, "A", "choice_a"))
"""A row with choices has one of these columns."""


def choices_of(columns: Mapping[str, object]) -> tuple[str, ...]:
    """Return the texts of a row's choices in their order; empty if it has none.

    They stand in the columns ``A``, ``B``, … or ``choice_a``, ``choice_b``, … up to the last that is not empty, or in
    ``options``, ``choices`` or ``candidates`` as a list, a mapping from letter to text, or a list written as JSON or
    Python.
    """
    if _NAMES.isdisjoint(columns):
        return ()
    for name in _LISTS:
        value = columns.get(name)
        if isinstance(value, Mapping):
            return tuple([str(text) for text in value.values()])
        if value is not None and (isinstance(value, (list, tuple)) or str(value).lstrip().startswith("[")):
            return tuple([str(text) for text in list_of_cell(value, cells=True)])
    for first, name in (("A", "{}"), ("choice_a", "choice_{}")):
        if first in columns:
            letters = ascii_uppercase if first == "A" else ascii_lowercase
            named = takewhile(columns.__contains__, map(name.format, letters))
            cells = [columns[name] for name in named]
            while cells and cells[-1] in (None, ""):
                cells.pop()
            if len(cells) > 1:
                return tuple(map(str, cells))
    return ()
