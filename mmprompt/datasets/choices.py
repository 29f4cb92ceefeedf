"""The choices of a multiple-choice row, and its question with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from math import isnan
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple, TypeVar

from mmprompt.datasets.list_cells import list_of_cell
from mmprompt.datasets.sample import column_error
from mmprompt.errors import RowError
from mmprompt.messages import Pieces, ask, is_blank, joined_text, text_of

OPTIONS = "options"
LISTS = (OPTIONS, "choices", "candidates")
_LETTERED = re.compile(r"\s*\(?([A-Z])[.):]\s+")
_LIKE_A_CHOICE = r"(?:option|choice|opt)s?[ _-]?(?:[a-z]|[0-9]{1,2})|[a-d]"
_MOST = len(ascii_uppercase)
_T = TypeVar("_T")
_SPELT = tuple([
    f"{word}{mark}{letter}"
    for letter in "aA01"
    for name in ("option", "choice", "opt")
    for word in (name, name.title(), name.upper())
    for mark in ("_", "", " ", "-")
])  # fmt: skip
_ORDER = {name: place for place, name in enumerate(dict.fromkeys((*LISTS, "A", "choice_a", *_SPELT)))}
"""The columns of which a row with choices has one; where it has several, the first that holds choices counts."""

_NAMES = frozenset(_ORDER)
FROM_1 = frozenset([name for name in _ORDER if name.endswith("1")])
"""The first columns of choices that are numbered from 1."""

_ENDS = {
    "a": ascii_lowercase,
    "A": ascii_uppercase,
    "0": [str(number) for number in range(_MOST)],
    "1": [str(number) for number in range(1, _MOST + 1)],
}
"""How the columns of choices end, by the end of the first."""

MISSING = frozenset(("NA", "<NA>", "#N/A", "nan", "NaN", "NAN", "null", "NULL", "undefined"))
"""How programs write a missing value. People write ``N/A`` and ``None`` as choices, so these are not among them."""


class Choices(NamedTuple):
    """The texts of a row's choices in their order, and the columns that hold them."""

    texts: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


_NONE = Choices()


def choices_in(columns: Mapping[str, object]) -> Choices:
    """Return a row's choices; empty if it has none.

    They stand in the columns ``A``, ``B``, … or ``choice_a``, ``choice_b``, …, also spelt ``option_a``, ``optionA``,
    ``Option A``, ``option_0`` or ``option_1`` if none between is missing, or in ``options``, ``choices`` or
    ``candidates`` as a list, a mapping from letter to text, a mapping with a list ``text``, or a list written as JSON
    or Python. Empty choices after the last are left out; an empty one before it is ``""``.
    """
    return _NONE if _NAMES.isdisjoint(columns) else next(every_choices(columns), _NONE)


def every_choices(columns: Mapping[str, object]) -> Iterator[Choices]:
    """Yield what ``choices_in`` returns, then the choices that a row has in further columns."""
    for first in sorted(_NAMES.intersection(columns), key=_ORDER.__getitem__):
        names = (first,) if first in LISTS else _lettered(first, columns)
        cells = _listed(columns[first]) if first in LISTS else [columns[name] for name in names]
        while cells and is_empty(cells[-1]):
            cells.pop()
        if len(cells) > 1 or (cells and first in LISTS):
            yield Choices(tuple(["" if is_empty(cell) else text_of(cell) for cell in cells]), names)


def unread_choices(columns: Mapping[str, object]) -> list[str]:
    """Return the columns that look like choices, among those from which ``choices_in`` reads none.

    A text in ``options``, ``choices`` or ``candidates``, or several columns such as ``option_a``.
    """
    texts = [name for name in LISTS if isinstance(columns.get(name), str) and not is_empty(columns[name])]
    named = [name for name in columns if _is_like_a_choice(name)]
    return texts or (named if sum(not is_empty(columns[name]) for name in named) > 1 else [])


@lru_cache(1000)  # names are few, and re looks its patterns up each time
def _is_like_a_choice(name: str) -> bool:
    return re.fullmatch(_LIKE_A_CHOICE, name, re.IGNORECASE) is not None


def option_lines(choices: Choices) -> str:
    """Return choices as lines: ``A. cat``, ``B. dog``.

    Raises:
        RowError: as ``letters_of``.
    """
    texts = without_letters(choices.texts)
    lines = [joined_text((letter, ". ", text)) for letter, text in zip(letters_of(choices), texts, strict=True)]
    return joined_text(lines, "\n")


def without_letters(choices: Sequence[_T]) -> list[_T | str]:
    """Return choices without the letters that they begin with, if they are ``A. cat``, ``B. dog`` and so on."""
    for choice, letter in zip(choices, ascii_uppercase, strict=False):
        given: object = choice
        if not isinstance(choice, str) or type(given) is Pieces or ask(choice, _own_letter) != letter:  # a number
            return list(choices)
    if len(choices) > len(ascii_uppercase):
        return list(choices)
    return [_LETTERED.sub("", str(choice), 1) for choice in choices]


def _own_letter(choice: str) -> str:
    """Return the letter that a choice begins with, as in ``A. cat``; empty if it begins with none."""
    found = _LETTERED.match(choice)
    return found[1] if found else ""


def letters_of(choices: Choices) -> str:
    """Return the letters of choices.

    Raises:
        RowError: a choice before the last is empty, or there are more choices than letters; with its column.
    """
    texts, columns = choices
    if len(texts) > len(ascii_uppercase):
        what = f"the row has {len(texts)} choices, and there are {len(ascii_uppercase)} letters"
        hint = "write the choices into the question, or use a task with a template"
        raise RowError(what, hint).located(column=columns[0])
    for number, text in enumerate(texts):
        if is_blank(text):
            column = columns[number] if len(columns) > 1 else columns[0]
            what = f"choice {ascii_uppercase[number]} is empty"
            raise column_error(column, what, "give it a text, or remove it", "MM714")
    return ascii_uppercase[: len(texts)]


def is_null(value: object) -> bool:
    """Return whether a cell is null or NaN."""
    return value is None or (type(value) is float and isnan(value))


def is_empty(value: object) -> bool:
    """Return whether a cell is null, NaN or blank."""
    return is_null(value) or (isinstance(value, str) and is_blank(value))


def _lettered(first: str, columns: Mapping[str, object]) -> tuple[str, ...]:
    spelt = [first[:-1] + end for end in _ENDS[first[-1]]]
    names = tuple(takewhile(columns.__contains__, spelt))
    return names if first in ("A", "choice_a") or columns.keys().isdisjoint(spelt[len(names) :]) else ()


def _listed(value: object) -> list[object]:
    """Return the choices that one column holds, the empty ones too."""
    if isinstance(value, Mapping):
        texts, labels = value.get("text"), value.get("label")
        if isinstance(texts, (list, tuple)):
            if not isinstance(labels, (list, tuple)) or len(labels) != len(texts):
                return list(texts)
            value = dict(zip(map(str, labels), texts, strict=True))
            if len(value) != len(texts):
                return list(texts)
        named = {str(key).upper(): text for key, text in value.items()}
        if not named or len(named) != len(value) or any(len(key) != 1 or key not in ascii_uppercase for key in named):
            return list(value.values())
        return [named.get(letter) for letter in ascii_uppercase[: ascii_uppercase.index(max(named)) + 1]]
    if not isinstance(value, str) or value.lstrip().startswith("["):
        found = list_of_cell(value, cells=True)
        return [] if len(found) == 1 and found[0] is value else [_text_of(choice) for choice in found]
    return []


def _text_of(choice: object) -> object:
    """Return a choice; for one such as ``{"label": "A", "text": "cat"}``, its text."""
    return choice["text"] if isinstance(choice, Mapping) and isinstance(choice.get("text"), str) else choice
