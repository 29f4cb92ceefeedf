"""How many bytes rows and requests hold in memory, for the bound on what waits."""

from __future__ import annotations

from collections.abc import Mapping

from mmprompt.datasets.sample import Row
from mmprompt.errors import RowError
from mmprompt.messages import MediaPart
from mmprompt.targets.wire_json import Payload


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
    if isinstance(wire, dict):
        return [part for value in wire.values() for part in media_of(value)]
    if isinstance(wire, list):
        return [part for value in wire for part in media_of(value)]
    return []
