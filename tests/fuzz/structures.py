"""Files that are well-formed outside and odd inside: their parts are changed, and lengths and check sums made right.

Mutations of bytes mostly stop at the first check of a container. These pass it.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable
from typing import NamedTuple

Parts = list[tuple[bytes, bytes]]
"""The parts of a file: a tag and a body each."""

_NUMBERS = (0, 1, 2, 3, 7, 8, 16, 127, 128, 255, 256, 65_535, 65_536, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 63)
_NESTED = frozenset((b"moov", b"trak", b"mdia", b"minf", b"stbl", b"edts", b"udta", b"iprp", b"ipco"))
_MOST = 1 << 20
"""Bytes; repeated parts may not make a file larger."""


class Container(NamedTuple):
    """How files of a kind are taken apart and put together."""

    parts_of: Callable[[bytes], Parts]
    file_of: Callable[[Parts], bytes]


def _png_parts(data: bytes) -> Parts:
    found, at = [], 8
    while at + 12 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        found.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 12 + size
    return found


def _png_file(parts: Parts) -> bytes:
    pieces = [struct.pack(">I", len(b)) + t + b + struct.pack(">I", zlib.crc32(t + b)) for t, b in parts]
    return b"\x89PNG\r\n\x1a\n" + b"".join(pieces)


def _riff_parts(data: bytes) -> Parts:
    found, at = [(b"", data[8:12])], 12
    while at + 8 <= len(data):
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        found.append((data[at : at + 4], data[at + 8 : at + 8 + size]))
        at += 8 + size + size % 2
    return found


def _riff_file(parts: Parts) -> bytes:
    pieces = [t + struct.pack("<I", len(b)) + b + bytes(len(b) % 2) for t, b in parts[1:]]
    body = parts[0][1] + b"".join(pieces) if parts else b""
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _iso_parts(data: bytes) -> Parts:
    found, at = [], 0
    while at + 8 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        if size < 8:
            break
        found.append((data[at + 4 : at + 8], data[at + 8 : at + size]))
        at += size
    return found


def _iso_file(parts: Parts) -> bytes:
    return b"".join([struct.pack(">I", len(b) + 8) + t + b for t, b in parts])


def _jpeg_parts(data: bytes) -> Parts:
    found, at = [], 2
    while at + 4 <= len(data) and data[at + 1] != 0xDA:
        size = int.from_bytes(data[at + 2 : at + 4], "big")
        found.append((data[at : at + 2], data[at + 4 : at + 2 + size]))
        at += 2 + size
    return [*found, (b"", data[at:])]


def _jpeg_file(parts: Parts) -> bytes:
    pieces = [t + struct.pack(">H", min(len(b) + 2, 65_535)) + b[:65_533] if t else b for t, b in parts]
    return b"\xff\xd8" + b"".join(pieces)


def _flac_parts(data: bytes) -> Parts:
    found, at = [], 4
    while at + 4 <= len(data):
        last, size = data[at] >> 7, int.from_bytes(data[at + 1 : at + 4], "big")
        found.append((bytes([data[at] & 0x7F]), data[at + 4 : at + 4 + size]))
        at += 4 + size
        if last:
            break
    return [*found, (b"", data[at:])]


def _flac_file(parts: Parts) -> bytes:
    blocks = [(t, b) for t, b in parts if t]
    heads = [bytes([t[0] & 0x7F | (0x80 if n == len(blocks) - 1 else 0)]) for n, (t, _) in enumerate(blocks)]
    pieces = [head + len(b).to_bytes(3, "big") + b for head, (_, b) in zip(heads, blocks, strict=True)]
    return b"fLaC" + b"".join(pieces) + b"".join([b for t, b in parts if not t])


_ISO, _RIFF = Container(_iso_parts, _iso_file), Container(_riff_parts, _riff_file)
CONTAINERS = {
    "png": Container(_png_parts, _png_file),
    "webp": _RIFF,
    "wav": _RIFF,
    "jpeg": Container(_jpeg_parts, _jpeg_file),
    "flac": Container(_flac_parts, _flac_file),
    "mp4": _ISO,
    "avif": _ISO,
}


def restructured(kind: str, data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """Return the file with one to four of its parts changed, moved, repeated, removed or taken from another file."""
    container = CONTAINERS[kind]
    parts = container.parts_of(data)
    for _ in range(draw.choice((1, 1, 2, 4))):
        _change(parts, draw, container.parts_of(draw.choice(others)), nested=container is _ISO)
    return container.file_of(parts)[:_MOST]


def _change(parts: Parts, draw: random.Random, others: Parts, *, nested: bool) -> None:
    if not parts:
        return
    at = draw.randrange(len(parts))
    tag, body = parts[at]
    # ``meta`` has four bytes before the boxes inside it
    lead = 4 if tag == b"meta" else 0
    if nested and (tag in _NESTED or lead) and draw.random() < 0.9:
        inner = _iso_parts(body[lead:])
        _change(inner, draw, others, nested=True)
        parts[at] = (tag, body[:lead] + _iso_file(inner))
        return
    how = draw.choice(("field", "field", "field", "field", "cut", "repeat", "remove", "move", "take", "noise"))
    if how == "field":
        parts[at] = (tag, _with_number(body, draw))
    elif how == "cut":
        parts[at] = (tag, body[: draw.randrange(len(body) + 1)])
    elif how == "noise":
        parts[at] = (tag, draw.randbytes(draw.choice((0, 1, 4, 64))))
    elif how == "repeat":
        parts[at:at] = [(tag, body)] * draw.choice((1, 2, 50))
    elif how == "take" and others:
        parts.insert(at, draw.choice(others))
    else:
        del parts[at]
        if how == "move":
            parts.insert(draw.randrange(len(parts) + 1), (tag, body))


def _with_number(body: bytes, draw: random.Random) -> bytes:
    """Return the body with a number of one to eight bytes in it replaced, early rather than late."""
    if not body:
        return body
    size = draw.choice((1, 2, 4, 8))
    at = draw.randrange(min(len(body), draw.choice((16, 64, 4096))))
    number = draw.choice((*_NUMBERS, draw.getrandbits(8 * size))) & (1 << 8 * size) - 1
    return body[:at] + number.to_bytes(size, draw.choice(("big", "little"))) + body[at + size :]
