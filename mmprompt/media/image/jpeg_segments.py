"""The segments of a JPEG, walked without a decoder: its size, and how many scans a decoder would make of it."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from mmprompt.errors import SourceError

SAVE_AGAIN = "save the picture again"
"""How to mend a picture that no encoder would write so."""

MOST_SCANS = 100
"""Scans of a JPEG, however small; each costs a pass over all pixels, however short it is."""

USUAL_SCANS = 18
"""What encoders write at most: libjpeg's own script has 10 for colour, and 18 for CMYK."""

_SCAN = re.compile(rb"\xff\xda")  # twice as fast as bytes.count
# what ends the data of a scan: in it, 0xFF is followed by 0 or a restart marker, or fills
_MARKER = re.compile(rb"\xff[\x02-\xcf\xd8-\xfe]")
_MOST_SEGMENTS = 10_000
_MOST_JUNK = 1 << 16
_MOST_TABLES = 1 << 16
"""Bytes of frame headers and quantization tables, of which a file has some hundred: Pillow makes objects of each."""
_MOST_EXIF = 64
"""Segments of EXIF, of which a file has one; Pillow joins them one by one, and copies what came before each time."""
_LONE_MARKERS = frozenset((0x01, *range(0xD0, 0xDA)))
_FRAME_HEADERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_TABLES = _FRAME_HEADERS | {0xDB, 0xDE}  # DQT, and DHP, which Pillow takes for a frame header
_START, _END, _SCAN_HEAD, _APP1 = 0xD8, 0xD9, 0xDA, 0xE1


class JpegLayout(NamedTuple):
    """Width and height in pixels, 0 where no header says them, and scans: counted exactly only beyond ``USUAL_SCANS``.

    Up to there it is how often the mark of a scan stands anywhere in the file, which is as many or more.
    """

    width: int
    height: int
    scans: int


def jpeg_layout(data: bytes) -> JpegLayout:
    """Walk a JPEG, and refuse one with more segments, EXIF, junk or scans than any encoder writes.

    Raises:
        SourceError: it has.
    """
    start, size, exif = 2, (0, 0), 0
    for code, at in _segments(data):
        start = at - 2
        if code == _APP1 and data.startswith(b"Exif\0", at + 2):
            exif += 1
            if exif > _MOST_EXIF:
                raise SourceError(f"the JPEG has more than {_MOST_EXIF} segments of EXIF", SAVE_AGAIN)
        if code in _FRAME_HEADERS and len(data) >= at + 7:
            size = _size_at(data, at)
    scans = len(_SCAN.findall(data))
    if scans > USUAL_SCANS:
        scans = _count_scans(data, start)
    if scans > MOST_SCANS:
        raise SourceError(f"the JPEG has {scans} scans, more than {MOST_SCANS}", SAVE_AGAIN)
    return JpegLayout(*size, scans)


def jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height in pixels, or None where no header says them.

    Raises:
        SourceError: it has too much before its picture.
        struct.error: the header is cut.
    """
    found = None
    for code, at in _segments(data):
        if code in _FRAME_HEADERS:  # of several the last counts, as for the decoders
            found = _size_at(data, at)
    return found


def _size_at(data: bytes, at: int) -> tuple[int, int]:
    height, width = struct.unpack_from(">HH", data, at + 3)
    return width, height


def _segments(data: bytes) -> Iterator[tuple[int, int]]:
    """Give the code of each segment before the first scan, and where its length stands."""
    at, junk, segments, tables = 2, 0, 0, 0
    while (mark := data.find(b"\xff", at)) >= 0 and mark + 1 < len(data):
        junk += mark - at
        code = data[mark + 1]
        if code == _SCAN_HEAD:
            break
        if code in (0, 0xFF):
            junk += 1
            at = mark + 1
        elif code in _LONE_MARKERS:
            segments += 1
            at = mark + 2
        else:
            segments += 1
            yield code, mark + 2
            at = mark + 2 + max(2, int.from_bytes(data[mark + 2 : mark + 4], "big"))
            tables += at - mark if code in _TABLES else 0
        if junk > _MOST_JUNK or segments > _MOST_SEGMENTS or tables > _MOST_TABLES:
            break
    if junk > _MOST_JUNK or segments > _MOST_SEGMENTS or tables > _MOST_TABLES:
        raise SourceError("the JPEG has too much before its picture", SAVE_AGAIN)


def _count_scans(data: bytes, at: int) -> int:
    """Return how many scans the picture has from ``at``, where a segment begins, to its end; what is behind is not its.

    Raises:
        SourceError: it has more segments than any encoder writes.
    """
    scans = 0
    for _ in range(_MOST_SEGMENTS):
        mark = _MARKER.search(data, at)
        if mark is None or (code := data[mark.start() + 1]) == _END:
            return scans
        scans += code == _SCAN_HEAD
        at = mark.end()
        if code != _START:
            at += max(2, int.from_bytes(data[at : at + 2], "big"))
    raise SourceError("the JPEG has too much between its scans", SAVE_AGAIN)
