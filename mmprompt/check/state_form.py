"""What the state of a check may hold. A file that a check goes on with may be a stranger's."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing

from mmprompt.check.kept import SCHEMA
from mmprompt.errors import MMPromptError
from mmprompt.targets.json_files import (
    ANY,
    CODE,
    COUNT,
    FINDING,
    NUMBER,
    TEXT,
    Fields,
    Form,
    Kind,
    or_null,
    parsed_json,
    require_form,
)


def _json_of(form: Form) -> Kind:
    """Return the kind of a text that holds JSON of a form."""

    def holds(text: str) -> bool:
        try:
            require_form(parsed_json(text), form, "")
        except MMPromptError:
            return False
        return True

    return Kind("JSON", frozenset((str,)), holds)


_BYTES = Kind("bytes", frozenset((bytes,)))
_WHOLE = Kind("a whole number", frozenset((int,)))
_PLACE = {**dict.fromkeys(("row", "line"), or_null(COUNT)), "file": or_null(TEXT)}
_TABLES: Mapping[str, Mapping[str, Kind]] = {
    "findings": {"row": _WHOLE, "code": CODE, "data": _json_of(FINDING)},
    "samples": {
        **_PLACE,
        "row": COUNT,
        "id": _json_of(ANY),
        **dict.fromkeys(("question", "sent"), or_null(_BYTES)),
        "answer": or_null(_json_of(ANY)),
        "shape": _json_of({...: TEXT}),
        "choice": or_null(_WHOLE),
        "length": or_null(COUNT),
        **dict.fromkeys(("requests", "size"), COUNT),
    },
    "against": {**_PLACE, "sent": or_null(_BYTES)},
    "media": {
        **dict.fromkeys(("row", "number", "size"), COUNT),
        **dict.fromkeys(("modality", "name"), TEXT),
        **dict.fromkeys(("column_name", "media_type"), or_null(TEXT)),
        **dict.fromkeys(("offset", "pixels", "width", "height"), or_null(COUNT)),
        "digest": _BYTES,
        "cells": or_null(_BYTES),
        "seconds": or_null(NUMBER),
    },
    "alike": {"row": COUNT, "column_name": or_null(TEXT), "offset": or_null(COUNT), "digest": _BYTES},
    "thumbnails": dict.fromkeys(("digest", "data"), _BYTES),
    "fixes": {
        **_PLACE,
        "code": CODE,
        "column_name": TEXT,
        "value": _json_of(ANY),
        "safe": COUNT,
        "old": or_null(TEXT),
    },
    "progress": {
        "signature": TEXT,
        **dict.fromkeys(("items", "rows", "finished"), COUNT),
        "codes": _json_of([CODE]),
        "shared": _json_of([[CODE, TEXT]]),
    },
}


def is_state(database: sqlite3.Connection) -> bool:
    """Return whether a database holds the state of a check, and nothing but that.

    Raises:
        sqlite3.Error: it is damaged.
    """
    with closing(sqlite3.connect(":memory:")) as model:
        model.executescript(SCHEMA)
        made = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"
        if model.execute(made).fetchall() != database.execute(made).fetchall():
            return False
    if database.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
        return False
    for table, kinds in _TABLES.items():
        fit = Fields(kinds, {}).fit
        if not all(map(fit, database.execute(f"SELECT {', '.join(kinds)} FROM {table}"))):  # noqa: S608  # our own names
            return False
    return True
