"""Data URIs (RFC 2397): ``data:image/png;charset=utf-8;base64,PAYLOAD``."""

from __future__ import annotations

import re
from typing import NamedTuple

from mmprompt.errors import SourceError
from mmprompt.errors.findings import Note
from mmprompt.media.base64_text import decode
from mmprompt.media.media_types import declared_type
from mmprompt.media.sources import in_short

_LONGEST_HEAD = 1024
_SLICE = 1 << 14
_ESCAPES = re.compile(rb"(?:%[0-9A-Fa-f]{2})+")


class DataURI(NamedTuple):
    """The parts of a data URI: declared type (normalised; empty if it says nothing), encoding, and payload."""

    media_type: str
    is_base64: bool
    payload: str


def parse_data_uri(uri: str) -> DataURI:
    """Return the parts of ``uri``; scheme, type and the word base64 may be in any case.

    Raises:
        SourceError: it has no comma, which separates head and payload.
    """
    comma = uri.find(",", 0, _LONGEST_HEAD)
    if comma < 0:
        raise SourceError(
            f"{in_short(uri)} is a data URI without a comma", "write data:image/png;base64,…", code="MM209"
        )
    head = uri[5:comma].lower()
    words = [word.strip() for word in head.split(";")]
    return DataURI(declared_type(words[0]), "base64" in words[1:], uri[comma + 1 :])


def decode_payload(payload: str, is_base64: bool, limit: int | None = None) -> tuple[bytes, tuple[Note, ...]]:
    """Return the bytes of a payload, and findings about what had to be repaired.

    Raises:
        SourceError: it would give more than ``limit`` bytes (checked before decoding), or is not base64.
    """
    if not is_base64:
        if limit is not None and len(payload) > 3 * limit:
            raise SourceError(
                f"the data URI has {len(payload)} characters, more than {limit} bytes", "raise max_bytes", code="MM211"
            )
        try:
            return _unescaped(payload.encode("utf-8")), ()
        except UnicodeEncodeError:
            raise SourceError(
                "the data URI holds a lone surrogate", "encode the file as base64", code="MM209"
            ) from None
    if "%" not in payload[:64] and "%" not in payload[-16:]:
        return decode(payload, limit)
    # + / and = may be escaped inside a URL
    if limit is not None and len(payload) > 4 * limit + 1024:
        raise SourceError(
            f"the data URI has {len(payload)} characters, more than {limit} bytes", "raise max_bytes", code="MM211"
        )
    data, findings = decode(_unescaped(payload.encode("utf-8", "replace")).decode("latin-1"), limit)
    return data, (Note("MM219", "base64 with percent-encoding"), *findings)


def _unescaped(text: bytes) -> bytes:
    """Return ``text`` with its percent-encoding decoded; a malformed escape stays as it is.

    It works on slices and on runs of escapes: an object for each escape would take a hundred times the memory.
    """
    out = bytearray()
    at = 0
    while at < len(text):
        end = at + _SLICE
        escape = text.find(b"%", end - 2, end)  # do not cut an escape in two
        if escape > at:
            end = escape
        out += _ESCAPES.sub(_bytes_of, text[at:end])
        at = end
    return bytes(out)


def _bytes_of(escapes: re.Match[bytes]) -> bytes:
    return bytes.fromhex(escapes[0].replace(b"%", b"").decode("ascii"))
