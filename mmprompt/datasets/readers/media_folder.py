"""A folder of pictures, sounds or videos with a metadata file, which names them in its column ``file_name``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from mmprompt.datasets.dataset_file import DatasetFile
from mmprompt.datasets.list_cells import list_of_cell
from mmprompt.datasets.media_columns import media_column
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.readers.join import JoinTable, join_table
from mmprompt.datasets.sample import Row, column_error, each
from mmprompt.errors import shown
from mmprompt.media.media_types import suffix_type
from mmprompt.targets.exact_json import Remark

METADATA = ("metadata.jsonl", "metadata.csv", "metadata.parquet")
_NAME = "file_name"
_NAMED = 3
"""How many media that are in no row are named."""


def placed(rows: Iterable[Row], metadata: DatasetFile, notes: Notes) -> Iterator[Row]:
    """Yield the rows of a metadata file with their media: ``file_name`` becomes a column of its modality.

    ``NAME_file_name`` becomes the column NAME, and ``NAME_file_names`` a list. Media in the folder that are in no row
    are noted after the last row.
    """
    with join_table() as listed:
        yield from each(rows, lambda row: row._replace(columns=_with_media(row.columns, listed), scanned=False))
        if metadata.root is not None:
            notes.add(_unlisted(metadata.root, listed), metadata.name, None)


def _unlisted(folder: str, listed: JoinTable) -> Iterator[Remark]:
    """Yield a remark if the folder holds media that are in no row."""
    count, first = 0, []
    for name in _media_below(folder):
        if not listed.of(name):
            count += 1
            if count <= _NAMED:
                first.append(shown(name))
    if count:
        are = "1 medium in the folder is" if count == 1 else f"{count} media in the folder are"
        what = f"{are} in no row: {', '.join(first)}{', …' if count > _NAMED else ''}"
        yield Remark("unlisted", None, what, "MM023")


def _media_below(folder: str) -> Iterator[str]:
    """Yield the media in a folder and its folders, by their names below it; those that are hidden are left out."""
    for path, folders, files in os.walk(folder):
        folders[:] = sorted([name for name in folders if not name.startswith(".")])
        for name in sorted(files):
            if not name.startswith(".") and suffix_type(name):
                yield os.path.relpath(os.path.join(path, name), folder)


def _with_media(columns: Mapping[str, object], listed: JoinTable) -> dict[str, object]:
    media: dict[str, object] = {}
    rest: dict[str, object] = {}
    for name, value in columns.items():
        target = _target(name)
        if target is None:
            rest[name] = value
            continue
        files = [_media(item, name) for item in list_of_cell(value, cells=name.endswith("s"))]
        if not files:
            raise column_error(name, "the row names no file", "give the name of a file", "MM202")
        for _, path in files:
            listed.add(os.path.normpath(path), None)
        column = target or files[0][0]
        values = [path if media_column(column) else {"bytes": None, "path": path} for _, path in files]
        media[column] = values if name.endswith("s") else values[0]
    if not media:
        raise column_error(_NAME, "no column 'file_name'", "give the name of a file", "MM006")
    return {**media, **rest}


def _target(name: str) -> str | None:
    """Return the name of the column that holds the medium; empty for ``file_name``, None for other columns."""
    for end in (_NAME, f"{_NAME}s"):
        if name == end:
            return ""
        if name.endswith(f"_{end}"):
            return name[: -len(end) - 1]
    return None


def _media(value: object, column: str) -> tuple[str, str]:
    """Return the modality of a file by its suffix, and its name."""
    if not isinstance(value, str) or not value.strip():
        raise column_error(column, "the row names no file", "give the name of a file", "MM202")
    kind = suffix_type(value)
    if not kind:
        what = f"{shown(value)} has no suffix of a picture, a sound or a video"
        raise column_error(column, what, "rename the file", "MM214")
    return kind.partition("/")[0], value
