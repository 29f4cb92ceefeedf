"""Lists that FFmpeg reads in time that grows with the square of their length, in files that hold other media.

FFmpeg looks through all tags it has for each further one: 300 KB of them take seconds, 3 MB minutes, and nothing stops
it. In RIFF files (WAV, AVI) the tags are marked as unused before it sees them; Matroska and Ogg files with far more
than any has are refused. What is counted is never less than what FFmpeg finds, wherever it may be led: marks are looked
for in the whole file, not where the structure says that they are.

Other lists were tried with some hundred thousand entries and cost less than a second for some MiB, with memory in
proportion: attachments and tracks of Matroska (FFmpeg makes 1000 streams at most), planes, empty blocks and laces,
elements that are void. The index of AVI is made in order; so is that of Matroska where its cues are.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

from mmprompt.errors import SourceError
from mmprompt.media.ffmpeg.matroska import children
from mmprompt.media.ffmpeg.mpeg_ts import check_programs
from mmprompt.media.media_types import AVI, MATROSKA, MPEG_TS, OGG, WAV, WEBM, Kind

_WORK = 1 << 28
"""Tags x bytes that they take: so many comparisons of names take half a second at most."""

_RIFF_TAGS = [re.compile(mark, re.DOTALL) for mark in (rb"LIST(?=....INFO)", rb"id3 (?=....ID3)", rb"ID3 (?=....ID3)")]

_MOST_CHUNKS = 1 << 16
"""Chunks of a WAV file, which has a dozen, and lists of tags in a RIFF file."""

_MOST_LISTS = 16
"""Lists of one kind in a Matroska file, which has one."""

_TAGS, _CHAPTERS, _CUES = b"\x12\x54\xc3\x67", b"\x10\x43\xa7\x70", b"\x1c\x53\xbb\x6b"
_TRACKS, _ATTACHMENTS = b"\x16\x54\xae\x6b", b"\x19\x41\xa4\x69"
_LISTS = {_TAGS: "tags", _CHAPTERS: "chapters", _CUES: "cues", _TRACKS: "tracks", _ATTACHMENTS: "attachments"}
_TAG, _EDITION, _POINT, _TRACK, _FILE = b"\x73\x73", b"\x45\xb9", b"\xbb", b"\xae", b"\x61\xa7"
_SIMPLE_TAG, _CHAPTER, _PLACE = b"\x67\xc8", b"\xb6", b"\xb7"
_MOST_TAGS, _MOST_CHAPTERS, _MOST_PLACES = 1 << 16, 1 << 14, 1 << 16
_MOST_TRACK_BYTES = 1 << 22
_ADDITIONS, _ADDITION, _MOST_ADDITIONS = b"\x75\xa1", b"\xa6", 1 << 18
"""What stands beside a frame, as its alpha does."""
_BYTES_A_PLACE = 1 << 10
"""A file may have a place in its cues for each KiB: it has one for each key frame, or for some seconds of sound."""

_OGG_HEAD, _CONTINUES, _BEGINS, _LONG = 27, 1, 2, 255
_IN_VAIN = 1 << 24
"""So many bytes of pages may have a wrong checksum, and for larger files as many as they have."""

_MOST_PAGES = 1 << 19
"""Three hours of pages of 20 ms; a page lasts a second, or has 4 KiB."""

_PACKETS = re.compile(rb"\xff*[^\xff]|\xff+")
_MOST_PACKETS = 1 << 22
"""A day of packets of 20 ms, or three hours of the shortest."""
_COMMENT_MARKS = frozenset((0x03, 0x04, 0x81, 0x84, 0x4F))
"""First bytes of what may be a list of comments: of Vorbis and VP8 (and OGM), FLAC, Theora, Opus."""
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def without_tag_lists(data: bytes, kind: Kind) -> bytes:
    """Return a file without the lists of tags that can be left out; the same object where there are none.

    Raises:
        SourceError: a file has far more of them than any file has.
    """
    if kind in (WAV, AVI):
        for tags in _RIFF_TAGS:
            data, lists = tags.subn(b"JUNK", data, _MOST_CHUNKS) if tags.search(data) else (data, 0)
            if lists == _MOST_CHUNKS:
                raise _made_up("lists of tags")
        if kind is WAV:
            _check_wav(data)
    elif kind in (MATROSKA, WEBM):
        _check_matroska(data)
    elif kind is OGG:
        _check_ogg(data)
    elif kind is MPEG_TS:
        check_programs(data)
    return data


def _check_wav(data: bytes) -> None:
    """Refuse chunks beyond what files have, walked as FFmpeg does, which keeps some of them."""
    at = 12
    for _ in range(_MOST_CHUNKS):
        name, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        if name == b"data":
            if data.startswith(b"RF64"):
                size = int.from_bytes(data[28:36], "little")  # of the ds64 chunk, which is the first
            elif size in (0, 0xFFFFFFFF):
                return
        at += 8 + size
        at += at & 1
        if at + 8 > len(data):
            return
    raise _made_up("chunks")


def _check_matroska(data: bytes) -> None:
    """Refuse tags, chapters, cues, tracks, attachments and additions to frames beyond what files have."""
    size, tags, names = _counted(data, _TAGS, _TAG, _SIMPLE_TAG)
    if size * names > _WORK or tags > _MOST_TAGS:
        raise _made_up("tags")
    if _counted(data, _CHAPTERS, _EDITION, _CHAPTER)[2] > _MOST_CHAPTERS:
        raise _made_up("chapters")
    if _counted(data, _CUES, _POINT, _PLACE)[2] > _most_children(data):
        raise _made_up("cues")
    if _counted(data, _TRACKS, _TRACK, _TRACK)[0] > _MOST_TRACK_BYTES:
        raise _made_up("tracks")
    _counted(data, _ATTACHMENTS, _FILE, _FILE)
    if _additions(data) > max(_MOST_ADDITIONS, len(data) >> 8):
        raise _made_up("additions to frames")


def _additions(data: bytes) -> int:
    """Return how many there are, counted to one past what a file may have; each takes FFmpeg 48 bytes."""
    most, count = max(_MOST_ADDITIONS, len(data) >> 8), 0
    at = data.find(_ADDITIONS)
    while at >= 0 and count <= most:
        for name, _, _ in children(data, at + 2):
            count += name == _ADDITION
            if name != _ADDITION or count > most:
                break
        at = data.find(_ADDITIONS, at + 1)
    return count


def _counted(data: bytes, mark: bytes, child: bytes, entry: bytes) -> tuple[int, int, int]:
    """Return the bytes of all ``child`` elements in the lists that begin with ``mark``, and two counts.

    They are those of all elements directly in the lists, and of ``entry`` at any depth in ``child``. In picture data
    the mark of a list may stand by chance, with any size behind it; a child after it does not.
    """
    total = lists = number = entries = 0
    most = _most_children(data)
    at = data.find(mark)
    while at >= 0:
        lists += 1
        if lists > _MOST_LISTS:
            raise _made_up("lists of tags, chapters or cues")
        for name, begin, end in children(data, at + len(mark)):
            number += 1
            if number > most:
                raise _made_up(_LISTS[mark])
            if name == child:
                total += end - begin
                entries += data.count(entry, begin, end)
        at = data.find(mark, at + 1)
    return total, number, entries


def _most_children(data: bytes) -> int:
    return max(_MOST_PLACES, len(data) // _BYTES_A_PLACE)


def ogg_streams(data: bytes) -> list[bytes]:
    """Return the packets of each stream of an Ogg file, joined.

    Raises:
        SourceError: it has far more pages, or damaged ones, than any has: readers try each mark of one.
    """
    streams: dict[bytes, list[bytes]] = {}
    for at, table, end in _pages(data):
        streams.setdefault(data[at + 14 : at + 18], []).append(data[at + _OGG_HEAD + len(table) : end])
    return [b"".join(bodies) for bodies in streams.values()]


def _check_ogg(data: bytes) -> None:
    """Refuse more comments than files have, in all packets that may be lists of them."""
    lists: dict[bytes, list[bytes]] = {}
    size = packets = 0
    for serial, body, more in _candidates(data):
        packets += more
        if packets > _MOST_PACKETS:
            raise _made_up("packets")
        if body:
            size += len(body)
            lists.setdefault(serial, []).append(body)
    if size * sum(_comments(b"".join(pieces)) for pieces in lists.values()) > _WORK:
        raise _made_up("comments")


def _comments(packets: bytes) -> int:
    """Return how many comments there may be at most: each has a length, whose upper half is zero, then a name and =."""
    count, at = 0, packets.find(b"\0\0")
    while at >= 0 and (end := packets.find(b"=", at)) >= 0:
        count += 1
        at = packets.find(b"\0\0", end)
    return count


def _candidates(data: bytes) -> Iterator[tuple[bytes, bytes, int]]:
    """Yield the pieces of packets that may be lists of comments, with the stream, and how many packets were passed."""
    begun: dict[bytes, int] = {}
    goes_on: dict[bytes, bool] = {}
    for at, table, _ in _pages(data):
        serial, flags = data[at + 14 : at + 18], data[at + 5]
        number = 0 if flags & _BEGINS else begun.get(serial, 0)
        # the end of a packet whose begin is missing is passed over
        number -= bool(flags & _CONTINUES and serial not in goes_on)
        pending = goes_on.pop(serial, False)
        start = at + _OGG_HEAD + len(table)
        for packet in _PACKETS.finditer(table):
            stop = start + _LONG * (len(packet[0]) - 1) + packet[0][-1]
            # the second packet of Speex and CELT are comments without a mark
            named = start < stop and (pending or number <= 1 or data[start] in _COMMENT_MARKS)
            yield serial, data[start:stop] if named else b"", 1
            if packet[0][-1] == _LONG:
                goes_on[serial] = named
            else:
                number += 1
            pending, start = False, stop
        begun[serial] = number


def _pages(data: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Yield the pages of an Ogg file: where each begins, its table of packets, and where it ends (RFC 3533, 6).

    What is no whole page with the right checksum is passed over, as FFmpeg does.
    """
    in_vain = pages = 0
    at = data.find(b"OggS")
    while at >= 0:
        head = at + _OGG_HEAD
        table = data[head : head + data[head - 1]] if head <= len(data) else b""
        end = head + len(table) + sum(table)
        whole = head <= end <= len(data) and len(table) == data[head - 1]
        if whole and _checksum(data, at, end) == data[at + 22 : at + 26]:
            yield at, table, end
            pages += 1
            if pages > _MOST_PAGES:
                raise _made_up("pages")
        else:
            in_vain += max(0, end - at) if whole else 0
            if in_vain > max(_IN_VAIN, len(data)):
                raise _made_up("damaged pages")
            end = at + 4
        at = data.find(b"OggS", end)


def _checksum(data: bytes, at: int, end: int) -> bytes:
    """Return the checksum of a page: zlib's, but with the bits of each byte the other way round, and begun at 0."""
    page = b"".join((data[at : at + 22], bytes(4), data[at + 26 : end])).translate(_REVERSED)
    return (zlib.crc32(page, 0xFFFFFFFF) ^ 0xFFFFFFFF).to_bytes(4, "big").translate(_REVERSED)


def _made_up(what: str) -> SourceError:
    return SourceError(f"the file has far more {what} than any file has", "write it anew without them")
