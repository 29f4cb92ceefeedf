"""The forms in which a row names one of its choices: a letter, a number, or its text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_uppercase

from mmprompt.datasets.choices import without_letters
from mmprompt.datasets.list_cells import list_of_cell

_LETTER = re.compile(r"\s*[(\[]?\s*([A-Za-z])\s*[)\].:]?\s*")
_LETTERED = re.compile(r"\s*\(?([A-Za-z])[.):]\s+(.*)", re.DOTALL)
_SEVERAL = re.compile(r"[A-Z](?:\s*[,;/&+ ]?\s*(?:and\s+)?[A-Z])+")
_NUMBER = re.compile(r"\s*\d{1,3}\s*")


def choice_of(answer: object, choices: Sequence[str]) -> int:
    """Return the 0-based number of the choice that an answer names, -1 if it names none.

    It may be the text of a choice, where case and blanks at its ends do not count, its letter (``B``, ``b``, ``(B)``,
    ``B.``), the letter and the text, or a number from 0, and from 1 if it is the number of choices. Of several answers
    all must name a choice; the number is that of the first.
    """
    if isinstance(answer, bool):
        return choice_of(str(answer), choices)
    if isinstance(answer, (int, float)):
        if 0 <= answer < len(choices) and answer == int(answer):
            return int(answer)
        return choice_of(f"{answer:g}", choices)
    if not isinstance(answer, str):
        several = [choice_of(one, choices) for one in answer] if isinstance(answer, (list, tuple)) else []
        return several[0] if several and min(several) >= 0 else -1
    found = _found(answer, choices)
    if found >= 0:
        return found
    listed = list_of_cell(answer, cells=True)
    return choice_of(listed, choices) if listed != [answer] and listed else -1


def readings_of(answer: object, choices: Sequence[str]) -> list[int]:
    """Return the choices that an answer names, if it can be read in two ways; empty if there is one way.

    A letter may also be the text of a choice. An integer counts from 0, and may also be a text, or count from 1.
    """
    if isinstance(answer, str):
        letter = _LETTER.fullmatch(answer)
        found = [_named(answer, choices), ascii_uppercase.find(letter[1].upper()) if letter else -1]
    elif isinstance(answer, int) and not isinstance(answer, bool):
        found = [_named(str(answer), choices), answer]
        if answer == len(choices) and found[0] < 0:
            return [answer - 1]
    else:
        return []
    readings = sorted({number for number in found if 0 <= number < len(choices)})
    return readings if len(readings) > 1 else []


def _found(answer: str, choices: Sequence[str]) -> int:
    named = _named(answer, choices)
    if named >= 0:
        return named
    letters = ascii_uppercase[: len(choices)]
    if match := _LETTER.fullmatch(answer):
        return letters.find(match[1].upper())
    if match := _LETTERED.fullmatch(answer):
        at = letters.find(match[1].upper())
        return at if at >= 0 and _named(match[2], choices) == at else -1
    if _NUMBER.fullmatch(answer):
        number = int(answer)
        return number if number < len(choices) else number - 1 if number == len(choices) else -1
    if _SEVERAL.fullmatch(answer.strip()):
        several = [c for c in answer.replace("and", "") if c.isalpha()]
        return letters.find(several[0]) if all(c in letters for c in several) else -1
    return -1


def _named(text: str, choices: Sequence[str]) -> int:
    """Return the number of the choice with this text."""
    sought = text.strip().casefold()
    for texts in (choices, without_letters(choices)):
        for number, choice in enumerate(texts):
            if choice.strip().casefold() == sought:
                return number
    return -1
