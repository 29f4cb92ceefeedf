"""From scores to ids, the best first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Places = NDArray[np.intp]

_FIRST = 16
_SLACK = 1e-9


def best_first(scores: Array, exact: Callable[[Places], Array] | None = None) -> Iterator[int]:
    """Yield the places of ``scores``, the highest first, equal scores in their order.

    Only as many are sorted as are asked for. If ``scores`` are exact to 1e-9 of the largest only, ``exact`` returns the
    exact scores of an array of places, so that equal rows have equal scores.
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
