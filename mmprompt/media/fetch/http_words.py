"""What an HTTP answer says, in words of our own: its status, and how long it asks to wait."""

from __future__ import annotations

import time
from http import HTTPStatus


def status_words(status: int) -> str:
    """Return a status as ``404 (Not Found)``; never the server's phrase, which is anything it likes."""
    try:
        return f"{status} ({HTTPStatus(status).phrase})"
    except ValueError:
        return str(status)


def retry_after(header: str) -> float | None:
    """Return the seconds that a ``Retry-After`` header asks to wait, a number or a date; None if it says nothing."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415  # only where a server asks for patience

    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
