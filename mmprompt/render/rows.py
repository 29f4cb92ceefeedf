"""What rendering makes of a row on its way to a line, and how many bytes of it wait in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mmprompt.errors import MMPromptError, RowError
from mmprompt.messages import MediaPart
from mmprompt.targets.wire_json import Payload

if TYPE_CHECKING:
    from mmprompt.datasets.sample import Sample


class Prepared(NamedTuple):
    """One row made ready: its records, whose media are bytes still, or why there are none."""

    row: Sample | RowError
    records: Sequence[dict[str, Any]]
    error: MMPromptError | None


class Rendered(NamedTuple):
    """One row rendered: the bytes of its line in pieces, or why there are none; and what is worth a report."""

    row: Sample | RowError
    chunks: list[bytes] | None
    error: MMPromptError | None
    findings: Sequence[str]


def bytes_of(prepared: Prepared) -> int:
    """Return how many bytes of media a prepared row holds."""
    media = [part for record in prepared.records for part in media_of(record)]
    return sum(map(_held, media))


def weight_of(row: Sample | RowError) -> int:
    """Return about how many bytes a row holds: those of its texts, and of the media that came with it."""
    if isinstance(row, RowError):
        return 0
    weight = 0
    pending: list[object] = list(row.columns.values())
    while pending:
        value = pending.pop()
        if isinstance(value, (str, bytes, bytearray)):
            weight += len(value)
        elif isinstance(value, Mapping):
            pending.extend(value.values())
        elif isinstance(value, (list, tuple)):
            pending.extend(value)
    for message in row.messages or ():
        weight += len(message.text) + sum([_held(part) for part in message.parts if isinstance(part, MediaPart)])
    return weight


def _held(part: MediaPart) -> int:
    return len(part.data) + sum(map(len, part.frames))


def media_of(record: Mapping[str, Any]) -> list[MediaPart]:
    """Return the media that a record holds."""
    pending = [value for key, value in record.items() if key not in ("id", "answer")]
    found = []
    for value in pending:
        if type(value) is Payload:
            found.append(value.part)
        elif isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    return found
