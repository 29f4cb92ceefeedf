"""How sure a score is: 95% intervals of a mean, and of the difference of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    Scores = Sequence[float] | np.typing.NDArray[np.float64]

_Z = 1.959963984540054
"""The standard normal quantile of 97.5%."""

_SEED = 20_190_531
RESAMPLES = 2000
_AT_ONCE = 250
_DISTINCT = 1024
"""Values that a resample draws from; more are put together in steps of the range by this number."""


class Interval(NamedTuple):
    """A 95% interval."""

    low: float
    high: float


def interval_of(scores: Scores) -> Interval | None:
    """Return the interval of a mean: Wilson's where all scores are 0 or 1, else a bootstrap. None without scores."""
    import numpy as np  # noqa: PLC0415  # loads on use

    values = np.asarray(scores, dtype=np.float64)
    if not len(values):
        return None
    if bool(np.isin(values, (0.0, 1.0)).all()):
        return wilson(int(values.sum()), len(values))
    return bootstrap(values)


def wilson(right: int, count: int) -> Interval:
    """Return Wilson's score interval of a share (1927).

    >>> [round(bound, 4) for bound in wilson(8, 10)]
    [0.4902, 0.9433]
    """
    share, spread = right / count, _Z * _Z / count
    centre = (share + spread / 2) / (1 + spread)
    half = _Z * math.sqrt(share * (1 - share) / count + spread / count / 4) / (1 + spread)
    low = 0.0 if right == 0 else max(0.0, centre - half)
    return Interval(low, 1.0 if right == count else min(1.0, centre + half))


def bootstrap(scores: Scores) -> Interval:
    """Return the percentile bootstrap interval of a mean. The same scores in any order give the same interval.

    A resample is a draw of how often each distinct score occurs, which takes less time than drawing single rows.
    """
    import numpy as np  # noqa: PLC0415  # loads on use

    values, counts = np.unique(np.asarray(scores, dtype=np.float64), return_counts=True)
    total = int(counts.sum())
    if len(values) > _DISTINCT:
        step = (values[-1] - values[0]) / _DISTINCT
        bins = np.minimum(((values - values[0]) / step).astype(np.int64), _DISTINCT - 1)
        sums, merged = np.bincount(bins, values * counts), np.bincount(bins, counts)
        values, counts = sums[merged > 0] / merged[merged > 0], merged[merged > 0]
    random = np.random.default_rng(_SEED)
    shares = counts / counts.sum()
    draws = [random.multinomial(total, shares, _AT_ONCE) @ values / total for _ in range(RESAMPLES // _AT_ONCE)]
    low, high = np.percentile(np.concatenate(draws), (2.5, 97.5))
    return Interval(float(low), float(high))


def mcnemar(better: int, worse: int) -> float:
    """Return the two-sided p-value of McNemar's exact test: how likely so uneven changes are if both are as good.

    >>> mcnemar(1, 9), mcnemar(5, 5), mcnemar(0, 0)
    (0.021484375, 1.0, 1.0)
    """
    count, fewer = better + worse, min(better, worse)
    if 2 * fewer == count:
        return 1.0
    if count <= 1000:
        return 2 * sum([math.comb(count, k) for k in range(fewer + 1)]) / (1 << count)
    whole = math.lgamma(count + 1) - count * math.log(2)
    terms = [whole - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in range(fewer + 1)]
    tail = math.fsum([math.exp(term - terms[-1]) for term in terms])
    return min(1.0, 2 * math.exp(terms[-1]) * tail)
