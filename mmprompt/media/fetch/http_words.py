"""The status of an HTTP answer in words, and the time that it asks to wait."""

from __future__ import annotations

import time
from http import HTTPStatus


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
