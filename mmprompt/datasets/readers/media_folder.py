"""A folder of pictures, sounds or videos with a metadata file, which names them in its column ``file_name``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mmprompt.datasets.list_cells import list_of_cell
from mmprompt.datasets.media_columns import media_column
from mmprompt.datasets.sample import Row
from mmprompt.errors import RowError, shown
from mmprompt.media.media_types import suffix_type

METADATA = ("metadata.jsonl", "metadata.csv", "metadata.parquet")
_NAME = "file_name"


def placed(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows of a metadata file with their media: ``file_name`` becomes a column of its modality.

    ``NAME_file_name`` becomes the column NAME, and ``NAME_file_names`` a list.
    """
    for row in rows:
        if isinstance(row, RowError):
            yield row
            continue
        try:
            columns = _with_media(row.columns)
        except RowError as error:
            yield row.located(error)
        else:
            yield row._replace(columns=columns, scanned=False)


def _with_media(columns: Mapping[str, object]) -> dict[str, object]:
    media: dict[str, object] = {}
    rest: dict[str, object] = {}
    for name, value in columns.items():
        target = _target(name)
        if target is None:
            rest[name] = value
            continue
        files = [_media(item, name) for item in list_of_cell(value, cells=name.endswith("s"))]
        if not files:
            raise RowError("the row names no file", "give the name of a file", code="MM202").located(column=name)
        column = target or files[0][0]
        values = [path if media_column(column) else {"bytes": None, "path": path} for _, path in files]
        media[column] = values if name.endswith("s") else values[0]
    if not media:
        raise RowError("no column 'file_name'", "give the name of a file", code="MM006").located(column=_NAME)
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
        raise RowError("the row names no file", "give the name of a file", code="MM202").located(column=column)
    kind = suffix_type(value)
    if not kind:
        what = f"{shown(value)} has no suffix of a picture, a sound or a video"
        raise RowError(what, "rename the file", code="MM214").located(column=column)
    return kind.partition("/")[0], value
