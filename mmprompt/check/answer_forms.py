"""The forms in which a row names one of its choices: a letter, a number, or its text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_uppercase

from mmprompt.datasets.choices import without_letters
from mmprompt.datasets.list_cells import list_of_cell

_LETTER = re.compile(r"[(\[]? ?([A-Za-z]) ?[)\].:]?")
_LETTERED = re.compile(r"\(?([A-Za-z])[.):]\s+(.*)", re.DOTALL)
_SEVERAL = re.compile(r"[A-Z](?:(?: ?[,;/&+] ?| )?(?:and )?[A-Z])+")
_NUMBER = re.compile(r"\d{1,3}")

_LONGEST = 200
"""Characters of a letter, a number or several letters, at the most. A longer answer can only be a text."""

_MOST_ANSWERS = 100
"""Answers of one row that are looked at."""


def choice_of(answer: object, choices: Sequence[str], index_base: int | None = None) -> int:
    """Return the 0-based number of the choice that an answer names, -1 if it names none.

    It may be its letter (``B``, ``b``, ``(B)``, ``B.``), the text of a choice, where case and blanks at its ends do not
    count, the letter and the text, or a number, where the first choice is ``index_base``. If that is None the first is
    0, and a number that is the number of choices is the last. Of several answers all must name a choice; the number
    is that of the first.
    """
    if isinstance(answer, bool):
        return choice_of(str(answer), choices)
    if isinstance(answer, float):
        answer = int(answer) if answer.is_integer() else f"{answer:g}"
    if isinstance(answer, int):
        number = _numbered(answer, len(choices), index_base or 0)
        return number if number >= 0 else choice_of(str(answer), choices, index_base)
    if isinstance(answer, (list, tuple)):
        nested = any(isinstance(one, (list, tuple)) for one in answer)
        several = [] if nested else [choice_of(one, choices, index_base) for one in answer[:_MOST_ANSWERS]]
        return several[0] if several and min(several) >= 0 else -1
    if not isinstance(answer, str):
        return -1
    found = _found(answer, choices, index_base)
    if found >= 0:
        return found
    listed = list_of_cell(answer, cells=True)
    return choice_of(listed, choices, index_base) if listed != [answer] and listed else -1


def readings_of(answer: object, choices: Sequence[str], index_base: int | None = None) -> list[int]:
    """Return the choices that an answer names, if it can be read in two ways; empty if there is one way.

    A letter may also be the text of a choice. An integer counts from 0, and may also be a text, or count from 1, unless
    ``index_base`` says from where it counts.
    """
    if isinstance(answer, str):
        letter = _LETTER.fullmatch(_in_one_line(answer))
        found = [_named(answer, choices), ascii_uppercase.find(letter[1].upper()) if letter else -1]
    elif isinstance(answer, int) and not isinstance(answer, bool) and index_base is None:
        found = [_named(str(answer), choices), answer]
        if answer == len(choices) and found[0] < 0:
            return [answer - 1]
    else:
        return []
    readings = sorted({number for number in found if 0 <= number < len(choices)})
    return readings if len(readings) > 1 else []


def _found(answer: str, choices: Sequence[str], index_base: int | None) -> int:
    letters, form = ascii_uppercase[: len(choices)], _in_one_line(answer)
    letter = _LETTER.fullmatch(form)
    number = letters.find(letter[1].upper()) if letter else -1
    number = _named(answer, choices) if number < 0 else number
    if number >= 0 or letter:
        return number
    if match := _LETTERED.fullmatch(answer.strip()):
        at = letters.find(match[1].upper())
        return at if at >= 0 and _named(match[2], choices) == at else -1
    if _NUMBER.fullmatch(form):
        last = index_base is None and int(form) == len(choices)
        return int(form) - 1 if last else _numbered(int(form), len(choices), index_base or 0)
    if _SEVERAL.fullmatch(form):
        several = [c for c in form.replace("and", "") if c.isalpha()]
        return letters.find(several[0]) if all(c in letters for c in several) else -1
    return -1


def _numbered(number: int, count: int, index_base: int) -> int:
    return number - index_base if 0 <= number - index_base < count else -1


def _in_one_line(answer: str) -> str:
    """Return an answer with single blanks, none at its ends; ``""`` if it is too long for a letter or a number."""
    form = " ".join(answer.split())
    return form if len(form) <= _LONGEST else ""


def _named(text: str, choices: Sequence[str]) -> int:
    """Return the number of the choice with this text."""
    sought = text.strip().casefold()
    for texts in (choices, without_letters(choices)):
        for number, choice in enumerate(texts):
            if choice.strip().casefold() == sought:
                return number
    return -1
