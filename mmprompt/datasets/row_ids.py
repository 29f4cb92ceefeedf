"""The id of a row: which columns hold it."""

from __future__ import annotations

from collections.abc import Mapping

ID_COLUMNS = ("id", "index", "question_id", "pid", "questionId", "qid")
"""The first of these columns that is not null holds the id. When rows are compared, they do not count."""


def id_of(columns: Mapping[str, object], row: int | None) -> object:
    """Return the id of a row, with its JSON type; its number ``row`` if no column holds an id."""
    for name in ID_COLUMNS:
        value = columns.get(name)
        if value is not None:
            return value
    return row
