"""A request in the wire form of its target, before its media are base64, and a row as lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mmprompt.datasets.sample import Sample
from mmprompt.errors.findings import Note


class WireRequest(NamedTuple):
    """One request in its target's wire form.

    ``wire`` is a list of messages, or a mapping where the wire form has more keys. Each medium in it is a ``Payload``:
    bytes, not yet base64. ``turn`` is the 0-based turn of a dialogue. ``label`` is the label of a PPL task.
    ``dropped`` counts the in-context examples that were left out because the prompt was too long.
    """

    wire: Any
    turn: int | None = None
    label: object = None
    dropped: int = 0


class RenderedRow(NamedTuple):
    """The lines of one row as pieces of bytes, and notes on it."""

    row: Sample
    chunks: list[bytes]
    notes: Sequence[Note]


RowLines = tuple[Sample, list[bytes], Sequence[Note]]
"""What a ``RenderedRow`` holds, for the rows of a whole dataset: a plain tuple is made in a third of the time."""


class LinesTogether(NamedTuple):
    """The lines of neighbouring rows, one line a row, on whose media there are no notes."""

    rows: Sequence[Sample]
    lines: list[bytes]
