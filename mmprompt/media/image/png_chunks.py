"""Facts from the chunks of a PNG, read without a decoder; and whether all of its pixels are there."""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from mmprompt.errors import SourceError

SAVE_AGAIN = "save the picture again"
"""The hint for a picture that no encoder writes."""

MOST_CHUNKS = 50_000
"""Chunks of a PNG: a 64 MiB file in the 8 KiB chunks of libpng has a sixth of that."""


class PngLayout(NamedTuple):
    """Bits of a sample as stored, the EXIF block (empty without one), and the number of frames."""

    bits: int
    exif: bytes
    frames: int


def png_layout(data: bytes) -> PngLayout:
    """Walk the chunks of a PNG.

    Raises:
        SourceError: it has more chunks than any encoder writes, or an impossible animation header.
    """
    bits = data[24] if data[12:16] == b"IHDR" and len(data) > 24 else 8
    at, pixels, exif, frames, own, animated = 8, False, b"", 0, False, False
    for _ in range(MOST_CHUNKS):
        size, name = struct.unpack_from(">I4s", data, at) if at + 8 <= len(data) else (0, b"IEND")
        if name == b"IEND":
            return PngLayout(bits, exif, frames + (frames > 0 and not own) or 1)
        if name == b"eXIf" and not exif:
            exif = data[at + 8 : at + 8 + size]
        pixels = pixels or name == b"IDAT"
        own = own or (name == b"fcTL" and not pixels)  # the picture of a plain decoder is the first frame
        if name == b"acTL":
            count = int.from_bytes(data[at + 8 : at + 12], "big")
            if animated or not 0 < count <= 0x80000000:
                raise SourceError("the PNG has a broken animation header", SAVE_AGAIN, code="MM300")
            animated, frames = True, 0 if pixels else count  # behind the pixels it counts for nothing
        at += size + 12
    raise SourceError(f"the PNG has more than {MOST_CHUNKS} chunks", SAVE_AGAIN, code="MM300")


def png_has_all_rows(data: bytes) -> bool:
    """True if the compressed pixels of a PNG are as many as its header says. Pillow does not check that."""
    if len(data) < 29 or data[12:16] != b"IHDR":
        return False
    expected, count = _png_pixel_bytes(*struct.unpack_from(">IIBBBBB", data, 16)), 0
    unpacker = zlib.decompressobj()
    at = 8
    while at + 8 <= len(data) and count < expected:
        size, name = struct.unpack_from(">I4s", data, at)
        left = data[at + 8 : at + 8 + size] if name == b"IDAT" else b""
        while left and count < expected:
            count += len(unpacker.decompress(left, 1 << 20))
            left = unpacker.unconsumed_tail
        at += size + 12
    return count >= expected


def _png_pixel_bytes(
    width: int, height: int, bits: int, colour: int, _packing: int, _filters: int, interlaced: int
) -> int:
    """Return the length of the pixels before packing: each row with a byte for its filter (PNG 3, 7.2 and 8)."""
    depth = bits * {2: 3, 4: 2, 6: 4}.get(colour, 1)
    passes = _ADAM7 if interlaced else ((0, 0, 1, 1),)
    sizes = [((width - x + dx - 1) // dx, (height - y + dy - 1) // dy) for x, y, dx, dy in passes]
    return sum(high * (1 + (wide * depth + 7) // 8) for wide, high in sizes if wide > 0 and high > 0)


_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
