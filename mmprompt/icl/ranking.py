"""Scores to ids, the best first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_FIRST = 16
_SLACK = 1e-9


def best_first(scores: Array, exact: Callable[[Array], Array] | None = None) -> Iterator[int]:
    """Give the places of ``scores``, highest first, equal scores in their order.

    Only as many are sorted as are asked for. Where ``scores`` are good to 1e-9 of the largest and no better, ``exact``
    gives the scores of an array of places so that equal rows have equal scores.
    """
    import numpy as np  # noqa: PLC0415  # only where rows are compared

    count = len(scores)
    slack = _SLACK * float(np.abs(scores).max(initial=0.0)) if exact is not None else 0.0
    done, width = 0, min(_FIRST, count)
    while done < count:
        if width < count:
            bar = np.partition(scores, count - width)[count - width]
            near = np.flatnonzero(scores >= bar - slack)
        else:
            near = np.arange(count)
        order = np.argsort(-(scores[near] if exact is None else exact(near)), kind="stable")
        yield from near[order[done:width]].tolist()
        done, width = width, min(width * 8, count)
