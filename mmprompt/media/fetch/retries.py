"""Trying a request again: which faults may pass, and how long to wait before the next try."""

from __future__ import annotations

import random


class PassingError(Exception):
    """A fault that may be gone at the next try.

    ``after`` is how many seconds the server asks to wait, None where it does not ask. ``away``: there was no answer at
    all.
    """

    def __init__(self, what: str, hint: str = "", after: float | None = None, *, away: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.after = after
        self.away = away


def pause_before(attempt: int, first: float, longest: float, after: float | None) -> float:
    """Return the seconds to wait after a failed attempt: at random up to a bound that doubles, and at least ``after``.

    Args:
        attempt: the number of the failed attempt, from 1.
        first: the bound after the first attempt.
        longest: the largest bound.
        after: what the server asks for.
    """
    most = min(first * 2 ** (attempt - 1), longest)
    return max(random.uniform(0, most), after or 0.0)  # noqa: S311  # jitter is no secret
