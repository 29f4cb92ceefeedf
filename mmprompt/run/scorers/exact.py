"""The scorer ``exact``: the reply is the answer."""

from __future__ import annotations

from collections.abc import Sequence

from mmprompt.run.scorers.texts import normalised, text_of
from mmprompt.targets.json_values import JSONValue


def exact(prediction: str, answers: Sequence[JSONValue], choices: Sequence[str] = ()) -> float:  # noqa: ARG001  # as all
    """Return 1 if the reply equals an answer, else 0. Case, blanks at the ends and a closing full stop do not count.

    >>> exact("Paris.", ["paris"]), exact("It is Paris.", ["paris"])
    (1.0, 0.0)
    """
    said = normalised(prediction)
    return float(any(said == normalised(text_of(answer)) for answer in answers))
