"""A cache entry, and its form as bytes."""

from __future__ import annotations

import hashlib
import json
from typing import NamedTuple

from mmprompt.errors.findings import Note
from mmprompt.errors.rules import RULES

FORMAT = 3
_MAGIC = b"mmprompt media cache %d\n" % FORMAT
_DIGEST = 32
_SMALL = 512
"""About how many bytes the objects of an entry take beside its data."""


class CacheEntry(NamedTuple):
    """The result of a change: a new file or frames.

    If ``unchanged`` is true, the result is the original media and the entry has no bytes. ``changes`` and ``findings``
    were added by the change.
    """

    media_type: str = ""
    data: bytes = b""
    frames: tuple[bytes, ...] = ()
    changes: tuple[str, ...] = ()
    findings: tuple[Note, ...] = ()
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
    if not (value.unchanged or value.data or value.frames):
        return False
    texts = all(type(word) is str for word in (value.media_type, *value.changes))
    texts = texts and all(type(note) is Note for note in value.findings)
    return texts and all(isinstance(blob, bytes) for blob in (value.data, *value.frames))


def pack(key: str, entry: CacheEntry) -> bytes:
    """Return an entry as the bytes of its file: magic bytes, a checksum of the rest, a JSON header, the data."""
    notes = [(note.code, note.what, note.hint) for note in entry.findings]
    header = json.dumps([
        key, entry.media_type, entry.changes, notes, entry.unchanged,
        len(entry.data), [len(frame) for frame in entry.frames],
    ]).encode("ascii")  # fmt: skip
    rest = b"".join((len(header).to_bytes(4, "big"), header, entry.data, *entry.frames))
    return b"".join((_MAGIC, hashlib.sha256(rest).digest(), rest))


def unpack(key: str, packed: bytes) -> CacheEntry | None:
    """Return the entry that ``pack(key, …)`` turned into these bytes; None for any other bytes."""
    start = len(_MAGIC) + _DIGEST
    rest = memoryview(packed)[start:]
    if not packed.startswith(_MAGIC) or hashlib.sha256(rest).digest() != packed[len(_MAGIC) : start]:
        return None
    end = 4 + int.from_bytes(rest[:4], "big")
    try:
        # a checksum is not a signature, so each field of a forged file is checked
        named, media_type, changes, findings, unchanged, size, sizes = json.loads(bytes(rest[4:end]))
        words = (media_type, *changes, *[word for note in findings for word in note])
        texts = all(type(word) is str for word in words)
        notes = tuple(Note(code, what, hint) for code, what, hint in findings)
        known = all(note.code in RULES for note in notes)
        if not texts or not known or type(unchanged) is not bool or named != key:
            return None
        blobs = _cut(rest[end:], [size, *sizes])
    except (ValueError, TypeError, RecursionError):
        return None
    if blobs is None:
        return None
    return CacheEntry(media_type, blobs[0], tuple(blobs[1:]), tuple(changes), notes, unchanged)


def _cut(body: memoryview, sizes: list[int]) -> list[bytes] | None:
    """Return ``body`` cut into pieces of these sizes; None if the sizes do not match."""
    if not all(type(size) is int and size >= 0 for size in sizes) or sum(sizes) != len(body):
        return None
    pieces = []
    at = 0
    for size in sizes:
        pieces.append(bytes(body[at : at + size]))
        at += size
    return pieces
