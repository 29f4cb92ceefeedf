"""The scorer ``contains``: the reply holds the answer as whole words."""

from __future__ import annotations

from collections.abc import Sequence

from mmprompt.run.scorers.texts import normalised, text_of, whole_words
from mmprompt.targets.json_values import JSONValue


def contains(prediction: str, answers: Sequence[JSONValue], choices: Sequence[str] = ()) -> float:  # noqa: ARG001  # as all
    """Return 1 if the reply holds an answer as whole words, else 0. Case does not count; an empty answer is in none.

    >>> contains("It is Paris, of course", ["paris"]), contains("a parish", ["paris"])
    (1.0, 0.0)
    """
    said = normalised(prediction)
    sought = [normalised(text_of(answer)) for answer in answers]
    return float(any(text == said or (text and whole_words(text).search(said)) for text in sought))
