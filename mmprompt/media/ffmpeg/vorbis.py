"""The codebooks of Vorbis sound, counted: libvorbis puts eight bytes for each entry of one on its stack, which ends."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from mmprompt.errors import SourceError

MOST_ENTRIES = 1 << 15
"""Entries of a codebook; encoders write some thousand."""

MOST_VALUES = 1 << 20
"""Entries times dimensions of a codebook: so many numbers are made of it."""

MOST_IN_ALL = 1 << 21
"""Entries of all codebooks of a file: a hundred songs in a row have so many."""

_SETUP = b"\x05vorbis"
_SYNC = 0x564342


class _Bits:
    """Reads numbers from a packet, the lowest bit of each byte first (Vorbis I, 2.1); past its end there are zeros."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self.at = 8 * at

    def read(self, size: int) -> int:
        start = self.at >> 3
        (word,) = struct.unpack("<Q", self._data[start : start + 8].ljust(8, b"\0"))
        number: int = word >> (self.at & 7) & (1 << size) - 1
        self.at += size
        return number


def check_codebooks(streams: Iterable[bytes]) -> None:
    """Refuse Vorbis headers with a codebook far larger than any encoder writes.

    Args:
        streams: the packets of each stream of a file, joined.

    Raises:
        SourceError: there is one.
    """
    left = MOST_IN_ALL
    for packets in streams:
        at = packets.find(_SETUP)
        while at >= 0:
            left -= _entries(packets, at + len(_SETUP))
            if left < 0:
                raise _made_up(f"codebooks of more than {MOST_IN_ALL} entries")
            at = packets.find(_SETUP, at + 1)


def _entries(packets: bytes, at: int) -> int:
    """Return the entries of the codebooks that a header begins with (Vorbis I, 3.2.1), as far as they are sound."""
    bits, count = _Bits(packets, at), 0
    for _ in range(1 + bits.read(8)):
        if bits.read(24) != _SYNC:
            break
        dimensions, entries = bits.read(16), bits.read(24)
        if entries > MOST_ENTRIES or entries * dimensions > MOST_VALUES:
            raise _made_up(f"a codebook of {entries} x {dimensions} values")
        count += entries
        _skip_lengths(bits, entries)
        if not _skip_values(bits, entries, dimensions):
            break
    return count


def _made_up(what: str) -> SourceError:
    return SourceError(
        f"the Vorbis sound has {what}, far more than any has", "it is made up or damaged: encode it anew"
    )


def _skip_lengths(bits: _Bits, entries: int) -> None:
    """Pass the lengths of the code words of a codebook."""
    if bits.read(1):  # in order: how many have each length
        begun = 0
        for _ in range(bits.read(5), 32):
            if begun >= entries:
                return
            begun += bits.read((entries - begun).bit_length())
    elif bits.read(1):  # a bit says which are used
        for _ in range(entries):
            if bits.read(1):
                bits.at += 5
    else:
        bits.at += 5 * entries


def _skip_values(bits: _Bits, entries: int, dimensions: int) -> bool:
    """Pass the values that the code words stand for; tell whether they are of a known form."""
    form = bits.read(4)
    if form not in (1, 2):
        return not form
    bits.at += 64  # the least value and the step
    size = 1 + bits.read(4)
    bits.at += 1
    count = entries * dimensions
    if form == 1:
        count = 0
        while dimensions and (count + 1) ** dimensions <= entries:
            count += 1
    bits.at += size * count
    return True
