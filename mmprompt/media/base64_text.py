"""Base64 encoding and decoding; no other file does either.

Decoding is strict first. Text that it refuses is repaired by a fixed list (blanks, URL-safe alphabet, padding), with a
finding for each repair. Anything else is an error, because a lenient decoder silently returns wrong bytes.
"""

from __future__ import annotations

import re
from binascii import Error as BinasciiError
from collections.abc import Callable

from mmprompt.errors import SourceError, shown
from mmprompt.errors.findings import Note

try:
    from pybase64 import b64decode, b64encode, b64encode_as_string
except ImportError:  # ten times slower, with the same result
    from base64 import b64decode, b64encode  # type: ignore[assignment]

    def b64encode_as_string(data: bytes) -> str:  # type: ignore[misc]  # without alternative alphabets
        """Return ``data`` as base64 text."""
        return b64encode(data).decode("ascii")


_HEAD = 112
"""How many characters of base64 are decoded to recognise a format."""

_BLANKS = b" \t\n\r\x0b\x0c"
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_FOREIGN = re.compile(rb"[^A-Za-z0-9+/]")


encode: Callable[[bytes], bytes] = b64encode
"""Return bytes as base64 in the standard alphabet, padded, on one line."""

encode_text: Callable[[bytes], str] = b64encode_as_string
"""Return what ``encode`` returns, as a string."""


def decode(text: str, limit: int | None = None) -> tuple[bytes, tuple[Note, ...]]:
    """Return the bytes that ``text`` encodes, and findings about what had to be repaired.

    Args:
        text: base64 alone, without the head of a data URI.
        limit: the most bytes it may give; checked from its length before it is decoded.

    Raises:
        SourceError: it would give more than ``limit`` bytes, is empty or cut off, or holds a character that is not
            base64.
    """
    if limit is not None and len(text) > (limit + 2) // 3 * 4:
        _check_length(text, limit)
    try:
        data: bytes = b64decode(text, validate=True)
    except ValueError:  # binascii.Error, and what a text that is not ASCII gives
        return _decode_mended(text)
    if not data:
        raise SourceError("the base64 text is empty", "encode the bytes of the file", code="MM202")
    return data, ()


def clean_head(text: str) -> bytes | None:
    """Return the bytes that the first characters of ``text`` encode, repaired; None if they are not base64."""
    try:
        raw = text[:_HEAD].encode("ascii").translate(_URL_SAFE, _BLANKS).rstrip(b"=")
    except UnicodeEncodeError:
        return None
    if _FOREIGN.search(raw):
        return None
    try:
        head: bytes = b64decode(raw[: len(raw) // 4 * 4])
    except BinasciiError:
        return None
    return head


def _check_length(text: str, limit: int) -> None:
    """Refuse a text that is too long even if blanks and line breaks do not count."""
    payload = len(text) - sum(map(text.count, _BLANKS.decode("ascii")))
    if payload > (limit + 2) // 3 * 4:
        raise SourceError(
            f"the base64 text has {payload} characters, more than {limit} bytes decoded",
            "raise max_bytes to allow it, or use --policy trusted",
            code="MM211",
        )


def _decode_mended(text: str) -> tuple[bytes, tuple[Note, ...]]:
    try:
        raw = text.encode("ascii")
    except UnicodeEncodeError as error:
        raise _foreign(text[error.start], error.start) from None
    findings = []
    clean = raw.translate(None, _BLANKS)
    if len(clean) != len(raw):
        findings.append(Note("MM219", "base64 with blanks or line breaks"))
    if b"-" in clean or b"_" in clean:
        clean = clean.translate(_URL_SAFE)
        findings.append(Note("MM219", "base64 in the URL-safe alphabet"))
    body = clean.rstrip(b"=")
    if bad := _FOREIGN.search(body):
        position = _original_position(raw, bad.start())
        raise _foreign(chr(raw[position]), position)
    if len(body) % 4 == 1:
        raise SourceError(
            f"the base64 text is cut off: {len(body)} characters are one too many or too few",
            "encode the file again",
            code="MM208",
        )
    padded = body + b"=" * (-len(body) % 4)
    if padded != clean:
        findings.append(Note("MM219", "base64 with wrong padding"))
    if not body:
        raise SourceError("the base64 text is empty", "encode the bytes of the file", code="MM202")
    data: bytes = b64decode(padded, validate=True)
    return data, tuple(findings)


def _original_position(raw: bytes, index: int) -> int:
    """Return the position in ``raw`` of the character at ``index`` of the text without blanks."""
    for position, code in enumerate(raw):
        if code in _BLANKS:
            continue
        if not index:
            return position
        index -= 1
    return len(raw) - 1


def _foreign(character: str, position: int) -> SourceError:
    return SourceError(
        f"the base64 text holds {shown(character)} at character {position}",
        "encode the file again, as plain base64",
        code="MM208",
    )
