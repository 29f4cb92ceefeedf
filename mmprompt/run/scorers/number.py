"""The scorer ``number``: the last number of the reply is that of the answer."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from mmprompt.run.scorers.texts import text_of
from mmprompt.targets.json_values import JSONValue

_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.])(?:(?<![\w)\]])[-\u2212+])?"
    r"(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?"
)
"""A number that begins no word and ends none such as A12; its sign stands after no number."""

_DIGITS = 400
"""Characters of a number that are read. A double holds none of more digits before the point."""

TOLERANCE = 1e-6


def number(prediction: str, answers: Sequence[JSONValue], choices: Sequence[str] = ()) -> float:  # noqa: ARG001  # as all
    """Return 1 if the last number of the reply equals that of an answer, else 0.

    They are equal if they differ by a millionth at the most. Commas between thousands are read.

    >>> number("6 x 7 = 42.0", [42]), number("about 1,200 km", ["1200"]), number("42 of 50", ["42"])
    (1.0, 1.0, 0.0)
    """
    said = last_number(prediction)
    if said is None:
        return 0.0
    sought = [last_number(text_of(answer)) for answer in answers]
    return float(any(right is not None and math.isclose(said, right, rel_tol=TOLERANCE) for right in sought))


def last_number(text: str) -> float | None:
    """Return the last number of a text, None if it has none."""
    found = None
    for match in _NUMBER.finditer(text):
        found = match
    if found is None:
        return None
    return float(found[0][:_DIGITS].replace(",", "").replace("\u2212", "-").rstrip("eE+-."))
