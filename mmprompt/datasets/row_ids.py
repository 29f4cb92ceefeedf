"""Which columns name a row."""

from __future__ import annotations

from collections.abc import Mapping

ID_COLUMNS = ("id", "index", "question_id")
"""The first of these that is there and not null is the id; two rows are of equal content whatever these say."""


def id_of(columns: Mapping[str, object], row: int | None) -> object:
    """Return the id of a row, with its JSON type; ``row``, its number if it is known, where no column names it."""
    for name in ID_COLUMNS:
        value = columns.get(name)
        if value is not None:
            return value
    return row
