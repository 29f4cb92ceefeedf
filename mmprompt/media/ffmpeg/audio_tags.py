"""Sound files without their lists of tags, which FFmpeg reads in time that grows with the square of their number."""

from __future__ import annotations

import re

from mmprompt.media.media_types import AAC, FLAC, MP3, Kind

LONGEST_TAGS = 1 << 16
"""Lists of tags up to so many bytes are left where they are: FFmpeg reads them in less than a second."""

_LAST_BLOCK = 0x80
_STREAM_INFO_END = 42
_APE_FOOTER = 32
_QUARTERS = b"".join(re.escape(bytes([byte])) for byte in range(0, 256, 4))
# the head of an ADTS frame: its mark, and a length (13 bits from the last two of the fourth byte) of 7 and more
_FRAME = re.compile(rb"\xff[\xf0-\xff].(?![" + _QUARTERS + rb"]\0[\0-\xdf]).{4}", re.DOTALL)


def without_tags(data: bytes, kind: Kind) -> bytes:
    """Return an MP3, AAC or FLAC file without long tags before, between or after its sound; any other as it is.

    The samples are the same: what a decoder needs of the header of a FLAC file stands in its first block (RFC 9639,
    8.2), and ID3 and APE tags hold nothing for it.
    """
    if kind not in (MP3, AAC, FLAC):
        return data
    if kind is AAC:
        data = _without_ape(data)
    start = _after_id3(data)
    if kind is AAC and len(data) - start > LONGEST_TAGS and data.find(b"ID3", start) >= 0:
        return _frames_alone(data, start)
    if data.startswith(b"fLaC", start):
        sound = _after_blocks(data, start)
        if sound - start <= LONGEST_TAGS:
            return data[start:] if start > LONGEST_TAGS else data
        head = data[start : start + _STREAM_INFO_END]
        return head[:4] + bytes([head[4] | _LAST_BLOCK]) + head[5:] + data[sound:]
    return data[start:] if LONGEST_TAGS < start < len(data) else data


def _after_id3(data: bytes) -> int:
    """Return where the ID3 tags at the beginning end (ID3v2.4, 3.1), 0 where there is none."""
    at = 0
    while data.startswith(b"ID3", at) and len(data) >= at + 10:
        size = data[at + 6 : at + 10]
        footer = 10 if data[at + 5] & 0x10 else 0
        at += 10 + footer + ((size[0] & 0x7F) << 21 | (size[1] & 0x7F) << 14 | (size[2] & 0x7F) << 7 | size[3] & 0x7F)
    return at


def _without_ape(data: bytes) -> bytes:
    """Return a file without the footers of long APE tags at its end; what is before them is then noise to FFmpeg."""
    end = len(data)
    while data[end - _APE_FOOTER : end].startswith(b"APETAGEX"):
        if int.from_bytes(data[end - 20 : end - 16], "little") <= LONGEST_TAGS:
            break
        end -= _APE_FOOTER
    return data[:end] if end < len(data) else data


def _frames_alone(data: bytes, at: int) -> bytes:
    """Return the frames of an AAC file (ADTS, ISO 13818-7, 6.2) from ``at`` without what stands between them."""
    frames = []
    while found := _FRAME.search(data, at):
        at = found.start()
        size = int.from_bytes(data[at + 3 : at + 6], "big") >> 5 & 0x1FFF
        frames.append(data[at : at + size])
        at += size
    return b"".join(frames)


def _after_blocks(data: bytes, start: int) -> int:
    """Return where the metadata of a FLAC file ends; ``start`` where its first block is cut or no such block."""
    at = start + 4
    if len(data) < start + _STREAM_INFO_END or data[at] & 0x7F or data[at + 1 : at + 4] != b"\0\0\x22":
        return start
    while at + 4 <= len(data):
        last = data[at] & _LAST_BLOCK
        at += 4 + int.from_bytes(data[at + 1 : at + 4], "big")
        if last:
            return at
    return len(data)
