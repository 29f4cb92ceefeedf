"""Elements of a Matroska or WebM file (RFC 8794), as far as they are looked at without a decoder."""

from __future__ import annotations

_HEADER, _SEGMENT, _CLUSTER = b"\x1a\x45\xdf\xa3", b"\x18\x53\x80\x67", b"\x1f\x43\xb6\x75"
_CHECKSUM, _TIMESTAMP = 0xBF, 0xE7


def element_size(data: bytes, at: int) -> int:
    """Return the bytes of the element whose ID ends at ``at``, those of its size included; all there is where open."""
    length = 9 - data[at].bit_length() if at < len(data) else 9
    if length > 8:
        return len(data)
    size = int.from_bytes(data[at : at + length], "big") & (1 << 7 * length) - 1
    return len(data) if size == (1 << 7 * length) - 1 else length + size


def is_whole(data: bytes) -> bool:
    """Tell whether a Matroska file has all the bytes that it says it has; false for any other file.

    The length in seconds that it declares would not tell: it reaches from 0 to the end of the longest stream.
    """
    if not data.startswith(_HEADER):
        return False
    at = 4 + element_size(data, 4)
    return data.startswith(_SEGMENT, at) and at + 4 + element_size(data, at + 4) <= len(data)


def first_tick(data: bytes) -> int:
    """Return the time of the first cluster of a Matroska file in its ticks; 0 for any other file, or where none is."""
    at = data.find(_CLUSTER) + 4
    if not data.startswith(_HEADER) or at < 4 or at >= len(data):
        return 0
    at += 9 - data[at].bit_length()
    if data[at : at + 1] == bytes([_CHECKSUM]):
        at += 1 + element_size(data, at + 1)
    if data[at : at + 1] != bytes([_TIMESTAMP]):
        return 0
    # its size is one byte, which no time exceeds
    return int.from_bytes(data[at + 2 : at + 2 + min(8, data[at + 1] & 0x7F)], "big") if at + 1 < len(data) else 0
