"""The scorer ``anls``: the average normalised Levenshtein similarity of Biten et al., 2019 (arXiv 1905.13648)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mmprompt.run.scorers.texts import text_of
from mmprompt.targets.json_values import JSONValue

THRESHOLD = 0.5


def anls(prediction: str, answers: Sequence[JSONValue], choices: Sequence[str] = ()) -> float:  # noqa: ARG001  # as all
    """Return the greatest similarity of the reply with an answer: 1 less their distance by the longer one's length.

    The distance counts the characters that are inserted, deleted or replaced. Case and the length of blanks do not
    count. A distance of half the length or more gives 0.

    >>> anls("Smyth", ["Smith", "Jones"]), anls("It is Smith", ["Smith"])
    (0.8, 0.0)
    """
    said = _plain(prediction)
    return max([_similarity(said, _plain(text_of(answer))) for answer in answers], default=0.0)


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def _similarity(one: str, other: str) -> float:
    longer = max(len(one), len(other))
    if one == other:
        return 1.0
    if abs(len(one) - len(other)) >= THRESHOLD * longer:  # the distance is at least the difference of the lengths
        return 0.0
    share = _distance()(one, other) / longer
    return 1 - share if share < THRESHOLD else 0.0


def _distance() -> Callable[[str, str], int]:
    """Return rapidfuzz's edit distance where it is installed, else our own."""
    try:
        from rapidfuzz.distance import Levenshtein  # noqa: PLC0415  # an optional library
    except ImportError:
        return edit_distance
    distance: Callable[[str, str], int] = Levenshtein.distance
    return distance


def edit_distance(one: str, other: str) -> int:
    """Return how many characters must be inserted, deleted or replaced to make one text the other.

    A column of the table is held as the bits of two integers, as Hyyrö describes (2003): each character of ``other``
    takes a few operations on them.

    >>> edit_distance("kitten", "sitting")
    3
    """
    if not one or not other:
        return len(one) + len(other)
    places: dict[str, int] = {}
    for at, character in enumerate(one):
        places[character] = places.get(character, 0) | 1 << at
    last, every = 1 << len(one) - 1, (1 << len(one)) - 1
    up, down, distance = every, 0, len(one)
    for character in other:
        same = places.get(character, 0)
        diagonal = (((same & up) + up) ^ up) | same
        grows, falls = down | ~(diagonal | up) & every, up & diagonal
        distance += bool(grows & last) - bool(falls & last)
        grows, falls = (grows << 1 | 1) & every, (falls << 1) & every
        up, down = falls | ~(same | down | grows) & every, grows & (same | down)
    return distance
