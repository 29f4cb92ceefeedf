"""Text files: UTF-8 whatever the locale. Bytes that are not UTF-8 cost one row, not the file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, TextIO

from mmprompt.errors import RowError

BOM = "\ufeff"


@contextmanager
def as_text(stream: BinaryIO) -> Iterator[TextIO]:
    """Open ``stream`` as text with its line ends kept; a byte that is not UTF-8 becomes a lone surrogate."""
    text = io.TextIOWrapper(stream, encoding="utf-8", errors="surrogateescape", newline="")
    try:
        yield text
    finally:
        text.detach()


def is_broken(text: str) -> bool:
    """Return whether text from ``as_text`` holds bytes that are not UTF-8."""
    if text.isascii():
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def broken(text: str, head: bytes = b"") -> RowError:
    """Return the error of a text that ``is_broken``, with the offset of its first bad byte.

    ``head`` is the beginning of the file: more text shows better which encoding it is.
    """
    raw = text.encode("utf-8", "surrogateescape")
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        from mmprompt.datasets.likely_encoding import encoding_hint  # noqa: PLC0415  # only for a fault

        what = f"byte 0x{raw[error.start]:02x} at byte offset {error.start} of the row is not UTF-8"
        return RowError(what, encoding_hint(raw, head), code="MM003")
    return RowError("the row holds a lone surrogate", "write the whole character", code="MM012")
