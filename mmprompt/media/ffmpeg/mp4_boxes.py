"""The boxes of an ISO base media file (MP4, QuickTime, M4A, 3GP), found as FFmpeg's reader finds them.

What FFmpeg would read has to be judged before it does, so boxes are taken apart by its rules rather than by the letter
of ISO 14496-12: a box is cut at the end of the box around it, a size that cannot be ends the box around it, and boxes
of any kind are looked for in each box that holds others.
"""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from mmprompt.errors import PolicyError, SourceError
from mmprompt.media.policy import MediaPolicy

BOXES_A_FRAME = 8
BOXES_BESIDE = 1 << 16
"""A file may have ``BOXES_BESIDE`` boxes, and ``BOXES_A_FRAME`` more for each of the policy's ``max_frames``."""

_DEEPEST = 12
"""FFmpeg refuses what is nested deeper than 11 boxes."""

_HOLDERS = frozenset((
    b"dinf", b"edts", b"ilst", b"mdia", b"minf", b"moof", b"moov", b"mvex", b"schi", b"sinf", b"stbl", b"traf", b"trak",
    b"tref", b"udta", b"wave", b"mfra", b"iprp", b"ipco", b"jp2h",
))  # fmt: skip
_MISPLACED = frozenset((b"trak", b"mdat"))
_MOVIE_MARKS = (b"mvhd", b"cmov")
_IN_STSD = re.compile(
    b"stsz|stz2|stts|ctts|stsc|stss|stps|stco|co64|sgpd|sbgp|trun|sidx|tfra|keys|iinf|iloc|senc|saiz|cmov|elst|chap"
)
_CMOV_HEAD = 24
_MOST_PACKED = 8
"""Packed headers in a file, which has one."""


class Box(NamedTuple):
    """A box: its kind, the bytes it lies in, where its content begins and ends there, and where it says it ends.

    ``end`` is past what is there where the file is cut. ``track`` numbers the ``trak`` or ``moof`` around it, from 1,
    0 for none; ``at`` is where the box begins, ``parent`` the kind of the box around it.
    """

    kind: bytes
    buffer: bytes
    at: int
    start: int
    end: int
    track: int
    parent: bytes

    def number(self, offset: int, size: int = 4) -> int:
        """Return the number of ``size`` bytes at ``offset`` from the content's begin; like FFmpeg even past its end."""
        at = self.start + offset
        return int.from_bytes(self.buffer[at : at + size], "big")


class _Range(NamedTuple):
    kind: bytes
    buffer: bytes
    at: int
    end: int
    depth: int
    track: int


def boxes(data: bytes, policy: MediaPolicy) -> Iterator[Box]:
    """Yield the boxes of a file, and those inside them, each before what it holds.

    Raises:
        PolicyError: more boxes than ``max_frames`` frames need, or a packed header of more than ``max_bytes``.
        SourceError: a packed header that cannot be unpacked.
    """
    walk = _Walk(data, policy)
    yield from walk.run(0)
    if not walk.has_movie:
        walk.again = True  # FFmpeg then looks for a header in what is marked as free
        yield from walk.run(0)


class _Walk:
    def __init__(self, data: bytes, policy: MediaPolicy) -> None:
        self._data = data
        self._max_bytes = policy.max_bytes
        self._left = BOXES_BESIDE + BOXES_A_FRAME * policy.max_frames
        self._most = self._left
        self._unpacked = self._packed = 0
        self._room_for_targets = len(data) // 8 + (1 << 16)
        self._tracks = 0
        self._begun: set[int] = set()
        self.has_movie = self.again = False

    def run(self, start: int) -> Iterator[Box]:
        """Yield the boxes from ``start`` on, and from where the index of fragments sends the reader."""
        self._begun.clear()
        starts = [start, *_fragment_index(self._data)]
        while starts:
            stack = [_Range(b"root", self._data, starts.pop(), len(self._data), 0, 0)]
            while stack:
                here = stack.pop()
                if here.kind == b"root" and here.at in self._begun:
                    continue
                box = self._next(here)
                if box is None:
                    continue
                if here.kind == b"root":
                    self._begun.add(here.at)
                after = max(box.end, box.start)
                if after < min(here.end, len(here.buffer)):
                    stack.append(here._replace(at=after))
                yield box
                stack.extend(reversed(self._inside(box, here)))
                if box.kind in (b"sidx", b"tfra"):
                    starts.extend(self._sent_to(box))

    def _next(self, here: _Range) -> Box | None:
        """Return the box that begins at ``here``, None where there is none."""
        at, buffer = here.at, here.buffer
        start = at + 8
        if start > here.end or start > len(buffer):
            return None
        size, kind = int.from_bytes(buffer[at : at + 4], "big"), buffer[at + 4 : start]
        if kind in _MISPLACED and here.kind not in (b"root", b"moov"):
            return None
        if size == 1 and start + 8 <= here.end:
            size = int.from_bytes(buffer[start : start + 8], "big") - 8
            start += 8
            content = size - 8
        else:
            content = here.end - start if size == 0 else size - 8
        if content < 0:
            return None
        self._left -= 1
        if self._left < 0:
            raise PolicyError(
                f"the file has more than {self._most} boxes", "raise max_frames to allow it, or use --policy trusted"
            )
        track = here.track
        if kind in (b"trak", b"moof"):
            self._tracks += 1
            track = self._tracks
        kind = self._really(kind, buffer, start)
        self.has_movie = self.has_movie or kind == b"moov"
        # of a file that is cut the last box says more than there is; inside others nothing may
        end = start + content if here.kind == b"root" else min(start + content, here.end)
        return Box(kind, buffer, at, start, end, track, here.kind)

    def _really(self, kind: bytes, buffer: bytes, start: int) -> bytes:
        """Return ``moov`` for a header that is marked as something else."""
        hidden = kind == b"hoov" or (kind == b"free" and self.again)
        return b"moov" if hidden and buffer[start + 4 : start + 8] in _MOVIE_MARKS else kind

    def _inside(self, box: Box, here: _Range) -> list[_Range]:
        """Return where boxes may be inside ``box``."""
        inner = _Range(box.kind, box.buffer, box.start, box.end, here.depth + 1, box.track)
        if inner.depth >= _DEEPEST:
            return []
        if box.kind in _HOLDERS:
            return [inner]
        if box.kind == b"meta":
            # with or without version and flags: FFmpeg looks for the first handler, four bytes at a time
            first = box.buffer.find(b"hdlr", box.start, box.end)
            while first >= 0 and (first - box.start) % 4:
                first = box.buffer.find(b"hdlr", first + 1, box.end)
            return [inner._replace(at=first - 4)] if first >= 0 else []
        if box.kind == b"stsd":
            found = _IN_STSD.finditer(box.buffer, box.start, min(box.end, len(box.buffer)))
            return [inner._replace(at=hit.start() - 4) for hit in found]
        if box.kind == b"cmov":
            return [_Range(b"moov", self._unpack(box), 0, self._unpacked_size(box), inner.depth, box.track)]
        return []

    def _sent_to(self, box: Box) -> set[int]:
        found = targets(box)
        self._room_for_targets -= len(found)
        if self._room_for_targets < 0:
            raise SourceError("the file lists more fragments than it can hold", "encode it anew")
        return {at for at in found if at < len(self._data)}

    def _unpacked_size(self, box: Box) -> int:
        return box.number(_CMOV_HEAD - 4)

    def _unpack(self, box: Box) -> bytes:
        """Return a packed header (QuickTime's ``cmov``)."""
        self._packed += 1
        if self._packed > _MOST_PACKED:
            raise SourceError(f"the file has more than {_MOST_PACKED} packed headers", "encode it anew")
        size = self._unpacked_size(box)
        self._unpacked += size
        if self._unpacked > self._max_bytes:
            raise PolicyError(
                f"the header unpacks to {self._unpacked} bytes, more than max_bytes ({self._max_bytes})",
                "raise max_bytes to allow it",
            )
        packed = box.buffer[box.start + _CMOV_HEAD : box.end]
        try:
            return zlib.decompressobj().decompress(packed, size + 1)[:size]
        except zlib.error:
            raise SourceError("the header of the file cannot be unpacked", "it may be cut: fetch it again") from None


def _fragment_index(data: bytes) -> list[int]:
    """Return where the index of fragments begins that the last four bytes of a file speak of (ISO 14496-12, 8.8.11)."""
    at = len(data) - int.from_bytes(data[-4:], "big")
    return [at] if 0 <= at <= len(data) - 8 and data[at + 4 : at + 8] == b"mfra" else []


def targets(box: Box) -> list[int]:
    """Return where a ``sidx`` or ``tfra`` box says that fragments begin, as far as it is there."""
    wide = 8 if box.number(0, 1) else 4
    there = min(box.end, len(box.buffer)) - box.start
    if box.kind == b"sidx":
        first, step = 16 + 2 * wide, 12
        count = min(box.number(first - 2, 2), max(0, there - first) // step)
        sizes = [box.number(entry) & 0x7FFFFFFF for entry in range(first, first + step * count, step)]
        return list(itertools.accumulate(sizes[:-1], initial=box.end + box.number(12 + wide, wide))) if sizes else []
    fields = box.number(8)
    first, step = 16, 2 * wide + (fields >> 4 & 3) + (fields >> 2 & 3) + (fields & 3) + 3
    count = min(box.number(12), max(0, there - first) // step)
    return [box.number(first + wide + step * entry, wide) for entry in range(count)]
