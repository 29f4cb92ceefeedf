"""The media of a request: how ``Request.media`` lists them, and how many bytes they take in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from mmprompt.datasets.sample import Row
from mmprompt.errors import RowError
from mmprompt.errors.findings import Note
from mmprompt.messages import MODALITIES, MediaPart
from mmprompt.targets.wire_json import EncodedJSON, Payload


class SentMedium(NamedTuple):
    """A medium that a request sends.

    ``size`` is in bytes, before base64; ``sha256`` is the hexadecimal digest of these bytes. Frames of a video count
    together. ``origin`` is the source in short. ``changes`` says in words what was changed. A medium that goes by its
    URL is not read: its type is empty, its size 0 and its digest empty.
    """

    modality: str
    media_type: str
    size: int
    sha256: str
    origin: str
    changes: tuple[str, ...]


_OF_TOOLS = frozenset(("tool_calls", "input", "function_call", "function_response"))
"""The keys of calls and results of functions, which hold no media. An argument may be called url."""


def sample_bytes(row: Row) -> int:
    """Return about how many bytes a row holds: its texts, and the media that came with it."""
    if isinstance(row, RowError):
        return 0
    size = 0
    pending: list[object] = list(row.columns.values())
    while pending:
        value = pending.pop()
        if isinstance(value, (str, bytes, bytearray)):
            size += len(value)
        elif isinstance(value, Mapping):
            pending.extend(value.values())
        elif isinstance(value, (list, tuple)):
            pending.extend(value)
    for message in row.messages or ():
        size += len(message.text) + sum([part_bytes(part) for part in message.parts if isinstance(part, MediaPart)])
    return size


def part_bytes(part: MediaPart) -> int:
    """Return how many bytes a medium has."""
    return len(part.data) + sum(map(len, part.frames))


def media_of(wire: object) -> list[MediaPart]:
    """Return the media in a request's wire form, in order."""
    if type(wire) is Payload:
        return [wire.part]
    if type(wire) is EncodedJSON:
        return [payload.part for payload in wire.payloads]
    if isinstance(wire, dict):
        return [part for value in wire.values() for part in media_of(value)]
    if isinstance(wire, list):
        return [part for value in wire for part in media_of(value)]
    return []


def sent_media(wire: object) -> Iterator[SentMedium]:
    """Yield the media of a wire form, in order."""
    for modality, medium in _placed(wire, ""):
        yield SentMedium(modality, "", 0, "", medium, ()) if isinstance(medium, str) else _sent(medium)


def count_media(wire: object) -> int:
    """Return how many media a wire form sends."""
    return sum(1 for _ in _placed(wire, ""))


def _placed(wire: object, modality: str) -> Iterator[tuple[str, MediaPart | str]]:
    """Yield each medium of a wire form, or its URL, with the modality that the keys and types around it say."""
    if type(wire) is Payload:
        yield wire.part.modality, wire.part
    elif isinstance(wire, dict):
        own = str(wire.get("type") or wire.get("mime_type"))
        modality = next((name for name in MODALITIES if name in own), modality)
        for key, value in wire.items():
            if isinstance(value, str):
                if key == "file_uri" or (modality and key in ("url", modality)):
                    yield modality, value
            elif key not in _OF_TOOLS:
                yield from _placed(value, modality)
    elif isinstance(wire, list):
        for value in wire:
            yield from _placed(value, modality)


def _sent(part: MediaPart) -> SentMedium:
    import hashlib  # noqa: PLC0415  # OpenSSL takes 3 ms to load

    digest = hashlib.sha256()
    for data in part.frames or (part.data,):
        digest.update(data)
    return SentMedium(part.modality, part.media_type, part_bytes(part), digest.hexdigest(), part.origin, part.changes)


def notes_of(media: Iterable[MediaPart]) -> Iterator[Note]:
    """Yield what was noticed about media, each note with the name of its medium; one inside a chat has no name."""
    for part in media:
        for note in part.findings:
            yield Note(note.code, note.what, medium=part.origin or part.modality)


def no_room(examples: int) -> Note:
    """Return the note that in-context examples were left out because the prompt was too long."""
    return Note("MM613", f"no room for {examples} of the in-context examples")
