"""Rows of an index set compared: from scores to ids, the best first, and whether a row is the test sample itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mmprompt.datasets.sample import ID_COLUMNS, Sample

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


def is_same_sample(row: Sample, sample: Sample) -> bool:
    """Return whether a row is the sample itself: the same row of the same file, or equal in all but the id columns."""
    if row is sample or (row.file is not None and row.file == sample.file and row.row == sample.row):
        return True
    theirs = sample.columns
    equal = 0
    for name, value in row.columns.items():
        if name not in ID_COLUMNS:
            if name not in theirs or not _equal(value, theirs[name]):
                return False
            equal += 1
    others = sum([name not in ID_COLUMNS for name in theirs])
    return equal == others if equal or others else _equal(row.columns, theirs)


def _equal(a: Any, b: Any) -> bool:
    """Return whether two values of a column are equal. NaN equals NaN, arrays compare as a whole."""
    if a is b:
        return True
    if isinstance(a, (str, int)):
        return bool(a == b)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return len(a) == len(b) and all(key in b and _equal(value, b[key]) for key, value in a.items())
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_equal, a, b))
    if hasattr(a, "shape") or hasattr(b, "shape"):
        return getattr(a, "shape", None) == getattr(b, "shape", None) and bool((a == b).all())
    if isinstance(a, float) and isinstance(b, float) and a != a and b != b:  # noqa: PLR0124  # both are NaN
        return True
    return bool(a == b)
