"""The scorer ``choice``: the reply names the right one of the row's choices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_uppercase

from mmprompt.check.answer_forms import choice_of
from mmprompt.run.scorers.choice_reply import choice_in, letters_in
from mmprompt.run.scorers.texts import normalised, text_of
from mmprompt.targets.json_values import JSONValue

_SEVERAL = re.compile(r"[A-Z](?:[ ,;/&+]*(?:and )?[A-Z])+")
_LEAST_LETTERS = 5
"""Letters that a row without choices may mean: A to E, and those up to the answer."""


def choice(
    prediction: str, answers: Sequence[JSONValue], choices: Sequence[str] = (), index_base: int | None = None
) -> float:
    """Return 1 if the reply names a right choice, else 0.

    An answer is a letter, else the text of a choice, or the number of a choice, where the first is ``index_base``, or
    0. An answer such as ``A, C`` needs all its letters. Without choices an answer is a letter, and the choices are A to
    E or more.

    >>> choices = ["cat", "dog"]
    >>> choice("Answer: (B)", ["B"], choices), choice("It is a dog.", ["B"], choices), choice("A", ["dog"], choices)
    (1.0, 1.0, 0.0)
    """
    several = [letters for answer in answers if len(letters := several_letters(answer, choices)) > 1]
    if several and letters_in(prediction) in several:
        return 1.0
    right = {right_choice(answer, choices, index_base) for answer in answers} - {-1}
    if not right:
        return 0.0
    offered = choices or [""] * max(_LEAST_LETTERS, max(right) + 1)
    return float(choice_in(prediction, offered) in right)


def right_choice(answer: JSONValue, choices: Sequence[str], index_base: int | None = None) -> int:
    """Return the 0-based number of the choice that an answer of a row names, -1 if it names none or several."""
    if isinstance(answer, dict):
        answer = text_of(answer)
    if several_letters(answer, choices) or answer == "":
        return -1
    return choice_of(answer, choices or [""] * len(ascii_uppercase), index_base or 0)


def several_letters(answer: JSONValue, choices: Sequence[str]) -> frozenset[str]:
    """Return the letters of an answer that names several choices at once, such as ``A, C``; empty if it is another."""
    if not isinstance(answer, str) or not _SEVERAL.fullmatch(answer.strip()):
        return frozenset()
    letters = frozenset(answer.replace("and", "")) & frozenset(ascii_uppercase)
    names = {normalised(one) for one in choices}
    known = not choices or letters <= set(ascii_uppercase[: len(choices)])
    return letters if known and normalised(answer) not in names else frozenset()
