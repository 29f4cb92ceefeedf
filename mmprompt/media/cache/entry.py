"""What a cache keeps of one piece of media, and that as bytes."""

from __future__ import annotations

import hashlib
import json
from typing import NamedTuple, Union

FORMAT = 1
_MAGIC = b"mmprompt media cache %d\n" % FORMAT
_DIGEST = 32
_SMALL = 512
"""What the objects around the bytes of an entry cost, about."""

Fact = tuple[str, Union[str, int, float, bool, None]]


class CacheEntry(NamedTuple):
    """What was made of media: the new file or frames, or facts about it.

    ``unchanged`` stands for the media itself, where nothing was to do; then there are no bytes. ``changes`` and
    ``findings`` are those that came with making it. ``facts`` are names and plain values.
    """

    media_type: str = ""
    data: bytes = b""
    frames: tuple[bytes, ...] = ()
    changes: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    unchanged: bool = False

    @property
    def size(self) -> int:
        """About how many bytes of memory the entry takes."""
        words = sum(map(len, (*self.changes, *self.findings)))
        return len(self.data) + sum(map(len, self.frames)) + words + _SMALL + 64 * len(self.frames)


def is_well_formed(value: object) -> bool:
    """Return whether a value is a well-formed ``CacheEntry``: a compromised decoding process may answer anything."""
    if not isinstance(value, CacheEntry):
        return False
    rows = (value.frames, value.changes, value.findings)
    if not all(isinstance(row, tuple) for row in rows) or type(value.unchanged) is not bool:
        return False
    texts = all(type(word) is str for word in (value.media_type, *value.changes, *value.findings))
    return texts and all(isinstance(blob, bytes) for blob in (value.data, *value.frames))


def pack(key: str, entry: CacheEntry) -> bytes:
    """Return an entry as the bytes of its file: a mark, a checksum of the rest, then lengths, words and bytes."""
    header = json.dumps([
        key, entry.media_type, entry.changes, entry.findings, entry.facts, entry.unchanged,
        len(entry.data), [len(frame) for frame in entry.frames],
    ]).encode("ascii")  # fmt: skip
    rest = b"".join((len(header).to_bytes(4, "big"), header, entry.data, *entry.frames))
    return b"".join((_MAGIC, hashlib.sha256(rest).digest(), rest))


def unpack(key: str, packed: bytes) -> CacheEntry | None:
    """Return the entry that ``pack(key, …)`` gave these bytes for; None for any others."""
    start = len(_MAGIC) + _DIGEST
    rest = memoryview(packed)[start:]
    if not packed.startswith(_MAGIC) or hashlib.sha256(rest).digest() != packed[len(_MAGIC) : start]:
        return None
    end = 4 + int.from_bytes(rest[:4], "big")
    try:
        # a checksum is no signature: a file that was made to have the right one is judged field by field
        named, media_type, changes, findings, facts, unchanged, size, sizes = json.loads(bytes(rest[4:end]))
        texts = all(type(word) is str for word in (media_type, *changes, *findings, *[name for name, _ in facts]))
        plain = all(isinstance(value, (str, int, float, type(None))) for _, value in facts)
        if not texts or not plain or type(unchanged) is not bool or named != key:
            return None
        blobs = _cut(rest[end:], [size, *sizes])
    except (ValueError, TypeError, RecursionError):
        return None
    if blobs is None:
        return None
    facts = tuple((name, value) for name, value in facts)
    return CacheEntry(media_type, blobs[0], tuple(blobs[1:]), tuple(changes), tuple(findings), facts, unchanged)


def _cut(body: memoryview, sizes: list[int]) -> list[bytes] | None:
    """Return ``body`` in pieces of these sizes; None if they are not its sizes."""
    if not all(type(size) is int and size >= 0 for size in sizes) or sum(sizes) != len(body):
        return None
    pieces = []
    at = 0
    for size in sizes:
        pieces.append(bytes(body[at : at + size]))
        at += size
    return pieces
