"""Facts of a Matroska or WebM file (RFC 8794), read without a decoder."""

from __future__ import annotations

_HEADER, _SEGMENT, _CLUSTER = b"\x1a\x45\xdf\xa3", b"\x18\x53\x80\x67", b"\x1f\x43\xb6\x75"
_CHECKSUM, _TIMESTAMP = 0xBF, 0xE7


def element_size(data: bytes, at: int) -> int:
    """Return the bytes of the element whose ID ends at ``at``, its size field included; all bytes if it has no size."""
    length = 9 - data[at].bit_length() if at < len(data) else 9
    if length > 8:
        return len(data)
    size = int.from_bytes(data[at : at + length], "big") & (1 << 7 * length) - 1
    return len(data) if size == (1 << 7 * length) - 1 else length + size


def is_whole(data: bytes) -> bool:
    """True for a Matroska file that has all the bytes it declares; false for any other file.

    Its declared seconds would not show that: they count from 0 to the end of the longest stream.
    """
    if not data.startswith(_HEADER):
        return False
    at = 4 + element_size(data, 4)
    return data.startswith(_SEGMENT, at) and at + 4 + element_size(data, at + 4) <= len(data)


def first_tick(data: bytes) -> int:
    """Return the time of a Matroska file's first cluster in ticks; 0 without one, and for any other file."""
    at = data.find(_CLUSTER) + 4
    if not data.startswith(_HEADER) or at < 4 or at >= len(data):
        return 0
    at += 9 - data[at].bit_length()
    if data[at : at + 1] == bytes([_CHECKSUM]):
        at += 1 + element_size(data, at + 1)
    if data[at : at + 1] != bytes([_TIMESTAMP]):
        return 0
    # one byte is enough for the size of a time
    return int.from_bytes(data[at + 2 : at + 2 + min(8, data[at + 1] & 0x7F)], "big") if at + 1 < len(data) else 0
