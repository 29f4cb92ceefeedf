"""Trying a request again: which faults may pass, and how long to wait; the status of an answer in words."""

from __future__ import annotations

import random
import time
from http import HTTPStatus


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
    """Return the seconds to wait after a failed attempt, numbered from 1; at least ``after``, as the server asks.

    They are drawn at random up to a bound, which is ``first`` seconds at first, doubles each time and ends at
    ``longest``.
    """
    most = min(first * 2 ** (attempt - 1), longest)
    return max(random.uniform(0, most), after or 0.0)  # noqa: S311  # jitter needs no secret


def status_words(status: int) -> str:
    """Return a status as ``404 (Not Found)``, with the standard phrase and not the server's own."""
    try:
        return f"{status} ({HTTPStatus(status).phrase})"
    except ValueError:
        return str(status)


def retry_after(header: str) -> float | None:
    """Return the seconds that a ``Retry-After`` header (a number or a date) asks to wait; None if it has neither."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415  # only if a server sends the header

    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
