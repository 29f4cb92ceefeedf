"""Finds the column of a row that holds a media source, for error messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Union

from mmprompt.segments import START_TAGS, Segment

Place = dict[str, Union[str, int, None]]
"""``column`` and ``offset``, as ``MMPromptError.located`` takes them"""


def place_of(columns: Mapping[str, object], source: object, output_column: str) -> Place:
    """Return ``column`` and ``offset`` of a source; empty if no column holds it, because a template composed it.

    Several columns may contain the name of a file, such as an id or a question. The best match is returned.
    """
    best: tuple[int, Place] = (0, {})
    for column, value in columns.items():
        if column == output_column:
            continue
        rank, offset = _holds(value, source)
        if rank > best[0]:
            best = rank, {"column": column, "offset": offset}
    return best[1]


def _holds(value: object, source: object) -> tuple[int, int | None]:
    """Return how well a column's value matches a source, from 0 (not at all) to 5, and the offset in the value."""
    if value is source:
        return 5, None
    if isinstance(value, (list, tuple)):
        return max((_holds(v, source)[0] - 1 for v in value if not isinstance(v, (list, tuple))), default=0), None
    if isinstance(value, Segment):
        return _holds(value.value, source)
    if not isinstance(value, str) or not isinstance(source, str):
        return 0, None
    for tag, modality in START_TAGS.items():
        if modality != "text" and (start := value.find(tag + source)) >= 0:
            return 4, start + len(tag)
    offset = value.find(source)
    return (0, None) if offset < 0 else (2, None) if len(value) == len(source) else (1, offset)
