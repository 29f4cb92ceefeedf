"""The tables of an ISO base media file (MP4, QuickTime, M4A, 3GP), held against the bytes that are there.

FFmpeg makes the whole index of such a file in memory when it opens it, by what the tables announce: 33 KB may take
gigabytes, or minutes. Here the tables are added up first. Three things are refused: what no file can have (a table
that is longer than its box, far more samples than the bytes can hold), what no file has by far (thousands of
encryption headers), and what would take more than the policy allows.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

from mmprompt.errors import PolicyError, SourceError
from mmprompt.media.ffmpeg.mp4_boxes import Box, boxes, targets
from mmprompt.media.policy import MediaPolicy

INDEX_SHARE = 8
"""The index may take so many times ``max_bytes``, as decoded sound may."""

UNBACKED = 1 << 21
"""So many samples (some 70 MB in FFmpeg) may be announced beyond what the bytes can hold: files are cut."""

_SAMPLE = 48
"""The most bytes that FFmpeg 7.1 and 8.1 were seen to take for a sample, an edit's copy of one included."""
_POINTER, _FRAGMENT, _FRAGMENT_TRACK, _ENCRYPTED = 8, 32, 72, 256
_WORK = 1 << 29
"""Steps of a few nanoseconds that FFmpeg may take where one table is looked through for each entry of another."""

_USUAL_TRACKS, _TRACK_WORK = 64, 1 << 23
"""Beyond so many tracks, tracks times samples: FFmpeg looks through all for each sample, 20 to 100 ns a track."""

_MOST = {b"pssh": 256, b"trex": 1024, b"----": 4096}
"""Boxes of which FFmpeg looks through all for each, and far more than any file has of them."""

_TABLES = {
    b"stts": (4, 8), b"ctts": (4, 8), b"stsc": (4, 12), b"stss": (4, 4), b"stps": (4, 4), b"stco": (4, 4),
    b"co64": (4, 8), b"keys": (4, 8),
}  # fmt: skip
"""Where the number of entries is, and the bytes of each (ISO 14496-12, 8.6 and 8.7); of a key at least."""

_GROUPS = (b"sync", b"rap ")
_TRUN_FIELDS = (0x100, 0x200, 0x400, 0x800)
_PER_PACKET = 160
"""PCM is not listed by the sample: FFmpeg makes packets of at least so many."""


def check_index(data: bytes, policy: MediaPolicy) -> None:
    """Hold what the tables of an ISO base media file announce against its bytes and the policy, before FFmpeg opens it.

    A file that is cut passes, and so does what is no such file.

    Raises:
        SourceError: the tables announce what the file cannot hold.
        PolicyError: FFmpeg's index of it would take more than 8 times ``max_bytes``, or too long; or it has more boxes
            than ``max_frames`` frames need.
    """
    tally = _Tally(len(data), policy)
    for box in boxes(data, policy):
        tally.add(box)
    tally.judge()


@dataclass
class _Track:
    """What the tables of one track announce.

    ``ticks`` where each sample may last one tick, as those of PCM do; ``unsure`` where it may not.
    """

    samples: int = 0
    size: int = 0
    handlers: set[bytes] = field(default_factory=set)
    ticks: bool = False
    unsure: bool = False
    chunks: int = 0
    chunk_runs: Box | None = None
    groups: int = 0
    edits: int = 0


class _Tally:
    def __init__(self, size: int, policy: MediaPolicy) -> None:
        self._room = size
        self._policy = policy
        self._readable = 4 * (size + policy.max_bytes)
        self._tracks: dict[int, _Track] = {}
        self._counts = dict.fromkeys(_MOST, 0)
        self._fragments: set[int] = set()
        self._last = self._late = self._streams = 0
        self._runs: dict[int, int] = {}
        self._samples = self._unbacked = self._bytes = 0
        self._boxes: dict[bytes, Callable[[Box], None]] = {
            b"stsz": self._sizes, b"stz2": self._sizes, b"trun": self._run, b"hdlr": self._handler,
            b"elst": self._edits, b"sgpd": self._groups, b"sbgp": self._groups, b"senc": self._encrypted,
            b"saiz": self._encrypted, b"iinf": self._items, b"iloc": self._items, b"sidx": self._fragment_list,
            b"tfra": self._fragment_list, b"moof": self._fragment,
        }  # fmt: skip

    def add(self, box: Box) -> None:
        """Take one box into account."""
        if box.kind == b"trak":
            self._streams += 1
        elif box.kind in _TABLES:
            self._table(box)
        elif box.kind in _MOST:
            self._counts[box.kind] += 1
            if self._counts[box.kind] > _MOST[box.kind]:
                raise _made_up(f"has more than {_MOST[box.kind]} boxes {box.kind.decode()}")
        else:
            judge = self._boxes.get(box.kind)
            if judge is not None:
                judge(box)

    def judge(self) -> None:
        """Refuse the file if all together is too much."""
        for track in self._tracks.values():
            self._index(track)
        if self._unbacked > UNBACKED:
            raise _made_up(f"announces {self._samples} samples, {self._unbacked} more than it can hold")
        if self._streams > _USUAL_TRACKS and self._streams * self._samples > _TRACK_WORK:
            raise _made_up(f"has {self._streams} tracks of {self._samples} samples together")
        fragments = len(self._fragments)
        taken = self._bytes + _SAMPLE * self._samples + fragments * (_FRAGMENT + _FRAGMENT_TRACK * self._streams)
        most = INDEX_SHARE * self._policy.max_bytes
        if taken > most:
            raise PolicyError(
                f"the index of the file takes {taken} bytes, more than {INDEX_SHARE} x max_bytes "
                f"({self._policy.max_bytes})",
                "raise max_bytes to allow it",
            )
        # a list that is not in order is moved for each entry; a run of samples is looked up among the fragments
        if (
            max(self._runs.values(), default=0) * fragments * max(1, self._streams) > _WORK
            or self._late * fragments > _WORK
        ):
            raise _made_up(f"has an index of {fragments} fragments that no player could use")

    def _track(self, box: Box) -> _Track:
        return self._tracks.setdefault(box.track, _Track())

    def _fits(self, box: Box, head: int, count: int, bits: int) -> None:
        """Refuse a table of ``count`` entries that the box cannot hold, whether or not the file is cut."""
        room = min(box.end - box.start, max(self._policy.max_bytes, self._room)) - head
        if count * bits > 8 * max(0, room):
            name = box.kind.decode("latin-1")
            raise _made_up(f"has a table {name} of {count} entries in a box of {box.end - box.start} bytes")

    def _table(self, box: Box) -> None:
        offset, size = _TABLES[box.kind]
        count = box.number(offset)
        self._fits(box, offset + 4, count, 8 * size)
        if box.kind == b"keys":
            self._counts[b"----"] += count
            if self._counts[b"----"] > _MOST[b"----"]:
                raise _made_up(f"names more than {_MOST[b'----']} keys")
            return
        track = self._track(box)
        if box.kind == b"stts":
            ticks = box.number(12)
            track.ticks = track.ticks or (count == 1 and (ticks == 1 or ticks >> 31 == 1))
            track.unsure = track.unsure or (count, ticks) != (1, 1)
        elif box.kind == b"ctts":
            track.groups = max(track.groups, self._sum(box, 8, count))
        elif box.kind == b"stsc":
            track.chunk_runs = box
        elif box.kind in (b"stco", b"co64"):
            track.chunks = max(track.chunks, count)

    def _sum(self, box: Box, head: int, count: int) -> int:
        """Return the sum of the first numbers of ``count`` pairs."""
        table = _numbers(box, head, 8 * count)
        self._readable -= 4 * len(table)
        if self._readable < 0:
            raise _made_up("has tables that lie over each other")
        return sum(table[::2])

    def _sizes(self, box: Box) -> None:
        track = self._track(box)
        count = box.number(8)
        size = box.number(4) if box.kind == b"stsz" else 0
        if not size:
            bits = 32 if box.kind == b"stsz" else box.number(7, 1)
            self._fits(box, 12, count, bits or 1)
        if count >= track.samples:
            track.samples, track.size = count, size

    def _run(self, box: Box) -> None:
        """Judge the samples of a fragment; those that have no field of their own take no bytes in the table."""
        flags, count = box.number(1, 3), box.number(4)
        size = 4 * sum(bool(flags & bit) for bit in _TRUN_FIELDS)
        head = 8 + 4 * (flags & 1) + (flags & 4)
        if size:
            self._fits(box, head, count, 8 * size)
        self._announce(count, 0 if size else 1)
        self._runs[box.track] = self._runs.get(box.track, 0) + 1

    def _announce(self, count: int, size: int) -> None:
        """Count samples of at least ``size`` bytes each; 0 where a table that is there lists them."""
        self._samples += count
        if size:
            backed = min(count, self._room // size)
            self._room -= backed * size
            self._unbacked += count - backed

    def _groups(self, box: Box) -> None:
        """Judge the groups of samples that FFmpeg reads, and their descriptions."""
        version = box.number(0, 1)
        if box.buffer[box.start + 4 : box.start + 8] not in _GROUPS:
            return
        if box.kind == b"sbgp":
            head = 12 + 4 * (version == 1)
            count = box.number(head - 4)
            self._fits(box, head, count, 64)
            track = self._track(box)
            track.groups = max(track.groups, self._sum(box, head, count))
            return
        head = 12 + 4 * min(version, 2)
        count = box.number(head - 4)
        self._fits(box, head, count, 8)

    def _encrypted(self, box: Box) -> None:
        head = 8
        if box.kind == b"saiz":
            head = 9 + 8 * (box.number(1, 3) & 1)
        count = box.number(head - 4)
        self._announce(count, 1)
        self._bytes += (_ENCRYPTED - _SAMPLE) * count

    def _items(self, box: Box) -> None:
        """Judge the list of pictures; an entry has at least 6 bytes (ISO 14496-12, 8.11.3 and 8.11.6)."""
        version = box.number(0, 1)
        head, size = (4, 4 if version else 2) if box.kind == b"iinf" else (6, 4 if version > 1 else 2)
        count = box.number(head, size)
        self._fits(box, head + size, count, 48)

    def _fragment(self, box: Box) -> None:
        self._place(box.at)

    def _fragment_list(self, box: Box) -> None:
        if box.kind == b"tfra":
            self._fits(box, 16, box.number(12), 88)
        for at in targets(box):
            self._place(at)

    def _place(self, at: int) -> None:
        if at in self._fragments:
            return
        self._fragments.add(at)
        self._late += at < self._last
        self._last = max(at, self._last)

    def _handler(self, box: Box) -> None:
        if box.parent == b"mdia":
            self._track(box).handlers.add(box.buffer[box.start + 8 : box.start + 12])

    def _edits(self, box: Box) -> None:
        entry = 20 if box.number(0, 1) == 1 else 12
        track = self._track(box)
        track.edits = max(track.edits, (min(box.end, len(box.buffer)) - box.start - 8) // entry)

    def _index(self, track: _Track) -> None:
        """Add what FFmpeg makes of the tables of a track."""
        entries = 0
        if track.ticks:
            entries = _packets(track)
            self._announce(entries, _PER_PACKET)
        # FFmpeg takes very long durations, but not all, for one tick; and the coding may make it sound, not the handler
        if not track.ticks or track.unsure or track.handlers != {b"soun"}:
            entries = max(entries, track.samples)
            self._announce(track.samples, track.size)
        self._unbacked += max(0, track.groups - entries) // 4
        # each edit but a few may list the samples anew, and looks for its first one by one
        again = max(0, track.edits - 4) * entries
        if again > _WORK:
            raise PolicyError(f"the file has {track.edits} edits of a track of {entries} samples", "encode it again")
        self._samples += again


def _packets(track: _Track) -> int:
    """Return the most packets that FFmpeg makes of PCM, of which the tables count each sample."""
    box = track.chunk_runs
    if box is None:
        return 0
    table = _numbers(box, 8, 12 * box.number(4))
    first, each = table[::3], table[1::3]
    last = array("I", [*first[1:], min(track.chunks + 1, 0xFFFFFFFF)])
    return sum(max(0, b - a) * (-(-count // _PER_PACKET)) for a, b, count in zip(first, last, each, strict=False))


def _numbers(box: Box, offset: int, size: int) -> array[int]:
    """Return the numbers of 32 bits in a table, as far as they are there."""
    start = box.start + offset
    stop = min(start + size, box.end, len(box.buffer))
    numbers = array("I", box.buffer[start : start + max(0, stop - start) // 4 * 4])
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


def _made_up(what: str) -> SourceError:
    return SourceError(f"the file {what}", "its header is made up or damaged: fetch it again, or encode it anew")
