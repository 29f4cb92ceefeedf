"""Facts from the headers of picture files, read without a decoder.

One pass over the heads of the blocks. It is bounded, so it is safe outside the sandbox.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from mmprompt.errors import SourceError
from mmprompt.media.image.png_chunks import MOST_CHUNKS, SAVE_AGAIN, png_layout

MOST_BLOCKS = 500_000
"""The most blocks of a GIF. A 64 MiB file of full blocks has half as many."""

_MOST_SEGMENTS = 10_000
_MOST_JUNK = 1 << 16
"""Segments of a JPEG before its picture, and bytes between them."""

_LONE_MARKERS = frozenset((0x01, *range(0xD0, 0xDA)))
_FRAME_HEADERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_SCAN_HEAD = 0xDA
_TIFF_ORDER = {b"II*\x00": "<", b"MM\x00*": ">"}
_ORIENTATION = 0x0112
_SHORT = 3


class GifLayout(NamedTuple):
    """The area that the frames of a GIF cover, their number, and whether the file has its end mark.

    Frames beyond the limit are not read; ``whole`` is then true.
    """

    width: int
    height: int
    frames: int
    whole: bool


class TiffLayout(NamedTuple):
    """The area that the tiles of a TIFF's first page cover (0 without tiles), and whether other pages follow."""

    width: int
    height: int
    several: bool


def exif_orientation(exif: bytes) -> int:
    """Return the orientation, 1 to 8, that an EXIF block states in its first directory; 1 if it states none."""
    body = exif[6:] if exif.startswith(b"Exif\x00\x00") else exif
    order = _TIFF_ORDER.get(body[:4])
    if order is None:
        return 1
    try:
        (start,) = struct.unpack_from(f"{order}I", body, 4)
        (count,) = struct.unpack_from(f"{order}H", body, start)
        for number in range(count):
            tag, kind, _, value = struct.unpack_from(f"{order}HHIH", body, start + 2 + 12 * number)
            if tag == _ORIENTATION:
                return value if kind == _SHORT and 1 <= value <= 8 else 1
    except struct.error:  # the block is cut
        return 1
    return 1


def orientation_exif(orientation: int) -> bytes:
    """Return an EXIF block that states only this orientation."""
    entry = struct.pack(">HHIHH", _ORIENTATION, _SHORT, 1, orientation, 0)
    return b"Exif\x00\x00MM\x00*" + struct.pack(">IH", 8, 1) + entry + bytes(4)


def picture_size(data: bytes) -> tuple[int, int]:
    """Return width and height in pixels, as stored, of a JPEG, PNG, WebP, GIF (its first frame) or BMP.

    Raises:
        SourceError: it is none of these, or its header is cut or damaged.
    """
    size = None
    try:
        if data.startswith(b"\xff\xd8"):
            size = _jpeg_size(data)
        elif data.startswith(b"\x89PNG") and data[12:16] == b"IHDR":
            size = struct.unpack_from(">II", data, 16)
        elif data.startswith(b"RIFF") and data[8:12] == b"WEBP":
            size = _webp_size(data)
        elif data.startswith(b"GIF8"):
            layout = gif_layout(data, 1)
            size = (layout.width, layout.height) if layout.frames else None
        elif data.startswith(b"BM"):
            old = int.from_bytes(data[14:18], "little") == 12
            size = struct.unpack_from("<HH" if old else "<Ii", data, 18)
    except struct.error:  # the header is cut
        size = None
    if size is None:
        raise SourceError("the size of the image cannot be read from its header", SAVE_AGAIN, code="MM300")
    return size[0], abs(size[1])


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height in pixels, or None if no header states them. If several do, the last one counts."""
    found = None
    at, junk = 2, 0
    for _ in range(_MOST_SEGMENTS):
        mark = data.find(b"\xff", at)
        if mark < 0 or mark + 1 >= len(data) or data[mark + 1] == _SCAN_HEAD:
            return found
        junk += mark - at
        code = data[mark + 1]
        at = mark + 2
        if code in (0, 0xFF):
            junk += 1
            at = mark + 1
        elif code not in _LONE_MARKERS:
            if code in _FRAME_HEADERS:
                height, width = struct.unpack_from(">HH", data, at + 3)
                found = width, height
            at += max(2, int.from_bytes(data[at : at + 2], "big"))
        if junk > _MOST_JUNK:
            break
    raise SourceError("the JPEG has too much before its picture", SAVE_AGAIN, code="MM300")


def _webp_size(data: bytes) -> tuple[int, int] | None:
    """Return the size of the canvas, or without one of the only frame (RFC 9649, 2.5 to 2.7; RFC 6386, 9.1)."""
    name = data[12:16]
    if name == b"VP8X" and len(data) >= 30:
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if name == b"VP8L" and data[20:21] == b"\x2f":
        (bits,) = struct.unpack_from("<I", data, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if name == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


def is_animated(data: bytes) -> bool:
    """True if a GIF, PNG or WebP holds a second frame. Of a cut file, the frames that are there count.

    Raises:
        SourceError: it has more blocks than any encoder writes.
    """
    if data.startswith(b"GIF8"):
        return gif_layout(data, 2).frames > 1
    if data.startswith(b"\x89PNG"):
        return png_layout(data).frames > 1
    moving = data[12:16] == b"VP8X" and len(data) > 20 and data[20] & 2
    return bool(moving) and sum(name == b"ANMF" for name, _ in _webp_chunks(data)) > 1


def webp_is_lossless(data: bytes) -> bool:
    """True if the picture of a WebP, or the first frame of its animation, is coded without loss."""
    for name, at in _webp_chunks(data):
        if name == b"ANMF":  # the chunks of a frame stand within its own, after 16 bytes
            return data[at + 24 : at + 28] == b"VP8L"
        if name in (b"VP8L", b"VP8 "):
            return name == b"VP8L"
    return False


def _webp_chunks(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield the name of each chunk and where it begins. Lengths are padded to even."""
    at = 12
    for _ in range(MOST_CHUNKS):
        if at + 8 > len(data):
            return
        yield data[at : at + 4], at
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        at += 8 + size + (size & 1)


def gif_layout(data: bytes, most_frames: int) -> GifLayout:
    """Walk the blocks of a GIF, up to ``most_frames`` frames.

    Raises:
        SourceError: it has more blocks than any encoder writes.
    """
    width, height, frames, blocks = 0, 0, 0, 0
    try:
        width, height = struct.unpack_from("<HH", data, 6)
        at = 13 + _table_size(data[10])
        while frames < most_frames:
            mark = data[at]
            if mark == 0x3B:
                break
            at += 1
            blocks += 1
            if mark == 0x2C:
                left, top, wide, high, flags = struct.unpack_from("<HHHHB", data, at)
                width, height = max(width, left + wide), max(height, top + high)
                at, blocks = _skip_blocks(data, at + 10 + _table_size(flags), blocks)
                frames += 1
            elif mark == 0x21:
                at, blocks = _skip_blocks(data, at + 1, blocks)
            elif blocks > MOST_BLOCKS:
                raise _too_many_blocks()
    except (IndexError, struct.error):
        return GifLayout(width, height, frames, whole=False)
    return GifLayout(width, height, frames, whole=True)


def _table_size(flags: int) -> int:
    return 6 << (flags & 7) if flags & 0x80 else 0


def _skip_blocks(data: bytes, at: int, blocks: int) -> tuple[int, int]:
    """Return where the sub-blocks at ``at`` end, and ``blocks`` plus their number."""
    while size := data[at]:
        at += size + 1
        blocks += 1
        if blocks > MOST_BLOCKS:
            raise _too_many_blocks()
    return at + 1, blocks


def _too_many_blocks() -> SourceError:
    return SourceError(f"the GIF has more than {MOST_BLOCKS} blocks", SAVE_AGAIN, code="MM300")


def tiff_layout(data: bytes) -> TiffLayout:
    """Walk the first directory of a TIFF.

    Raises:
        SourceError: the directory or a value of a tag is not all in the file. Pillow would only warn, and leave out
            what follows.
    """
    order = _TIFF_ORDER.get(data[:4], "<")
    sides, whole = dict.fromkeys((256, 257, 322, 323), 0), True
    try:
        (start,) = struct.unpack_from(f"{order}I", data, 4)
        (count,) = struct.unpack_from(f"{order}H", data, start)
        for number in range(count):
            tag, kind, length, value = struct.unpack_from(f"{order}HHII", data, start + 2 + 12 * number)
            size = length * _TIFF_SIZES.get(kind, 1)
            if size > 4 and kind in _TIFF_TYPES:
                whole = whole and value + size <= len(data)
            if tag in sides:
                short = struct.unpack_from(f"{order}H", data, start + 10 + 12 * number)[0]
                sides[tag] = max(sides[tag], short if kind == _SHORT else value)
        (following,) = struct.unpack_from(f"{order}I", data, start + 2 + 12 * count)
    except struct.error:  # the directory is cut
        following, whole = 0, False
    if not whole:
        raise SourceError("the TIFF is cut or damaged", "save or fetch it anew", code="MM300")
    width, height, wide, high = sides.values()
    if not wide or not high:
        return TiffLayout(0, 0, following > 0)
    return TiffLayout(-(-width // wide) * wide, -(-height // high) * high, following > 0)


_TIFF_SIZES = {3: 2, 4: 4, 5: 8, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8}
_TIFF_TYPES = frozenset((*_TIFF_SIZES, 1, 2, 6, 7))
"""The types of values that Pillow reads; it skips tags of other types."""
