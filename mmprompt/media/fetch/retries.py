"""Trying a request again: which faults may pass, and how long to wait; the status of an answer in words."""

from __future__ import annotations

import random
import re
import time
from http import HTTPStatus

_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")


class PassingError(Exception):
    """A fault that may be gone at the next try.

    ``after`` is how many seconds the server asks to wait, None where it does not ask. ``kind`` is ``"busy"`` where it
    has too much to do, ``"late"`` where it gave no answer in time, and ``"away"`` where it was not there.
    """

    def __init__(self, what: str, hint: str = "", after: float | None = None, kind: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.after = after
        self.kind = kind


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


def retry_after(header: str, milliseconds: str = "") -> float | None:
    """Return the seconds that a server asks to wait; None if it does not ask.

    Args:
        header: ``Retry-After``: a number, which may have a fraction, or a date.
        milliseconds: ``retry-after-ms``, which counts first.
    """
    from email.utils import parsedate_to_datetime  # noqa: PLC0415  # only if a server sends the header

    for text, unit in ((milliseconds.strip(), 1000.0), (header.strip(), 1.0)):
        if _NUMBER.fullmatch(text):
            return float(text) / unit
    try:
        return max(parsedate_to_datetime(header.strip()).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
