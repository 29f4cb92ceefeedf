"""The rule on names of media whose file exists under a name of another case."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache

from mmprompt.check.rule import CheckedMedium, CheckedRow, Fix, Hit, row_rule
from mmprompt.errors import shown
from mmprompt.media.sources import classify_or_path

_KEPT = 64
"""Folders whose names are kept: media of neighbouring rows lie together."""

_MOST_NAMES = 200_000
"""Names of one folder that are looked at."""


@row_rule("MM207", explains=("MM201",))
def wrong_case(row: CheckedRow) -> Iterator[Hit]:
    """A missing file that exists under a name of another case."""
    missing = {(e.where.column, e.where.offset, e.where.part) for e in row.errors if e.code == "MM201"}
    for medium in row.media if missing else ():
        source, place = medium.source, (medium.column, medium.offset, medium.number)
        if place in missing and isinstance(source, str) and classify_or_path(source) == "path":
            found = _other_case(source, row.roots)
            if found is not None:
                what = f"no file is named {shown(source)}, but one is named {shown(found)}"
                fix = _renamed(row, medium, source, found)
                yield Hit(what, f"write {found}", medium.column, medium.offset, fix=fix, part=medium.number)


def _renamed(row: CheckedRow, medium: CheckedMedium, source: str, name: str) -> Fix | None:
    value = None if medium.column is None else row.columns.get(medium.column)
    count = value.count(source) if isinstance(value, (str, list)) else 0
    if medium.column is None or count == 0 or (count > 1 and isinstance(value, str)):
        return None
    return Fix(medium.column, name, old=source)


def _other_case(path: str, roots: Sequence[str]) -> str | None:
    """Return the path of a file below a root that differs from ``path`` in case alone; None if there is not one."""
    names = path.split("/")
    if os.path.isabs(path) or ".." in names:
        return None
    for root in roots:
        folder, found = root, []
        for name in names:
            known = name if name in ("", ".") else _names_in(folder, _changed(folder)).get(name.casefold())
            if known is None:
                break
            folder = os.path.join(folder, known)
            found.append(known)
        if len(found) == len(names) and os.path.isfile(folder):
            return "/".join(found)
    return None


def _changed(folder: str) -> tuple[int, int, int]:
    """Return what tells a folder from others, and from itself after a change of its names."""
    try:
        status = os.stat(folder)
    except OSError:
        return 0, 0, 0
    return status.st_dev, status.st_ino, status.st_mtime_ns


@lru_cache(maxsize=_KEPT)
def _names_in(folder: str, _changed: tuple[int, int, int]) -> dict[str, str]:
    """Return the names in a folder by their names in lower case; of two that differ in case, one."""
    names: dict[str, str] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                names[entry.name.casefold()] = entry.name
                if len(names) >= _MOST_NAMES:
                    break
    except OSError:
        return {}
    return names
