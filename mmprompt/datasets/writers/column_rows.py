"""Rows with columns: media columns, ``hint``, ``question``, ``options``, ``answer`` and a row's other columns."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from string import ascii_uppercase

from mmprompt.datasets.media_columns import media_column
from mmprompt.datasets.writers.record import Medium, Record, media_then_text, not_held
from mmprompt.datasets.writers.stored_media import MediaStore
from mmprompt.errors import RowError, shown

Row = dict[str, object]


def row(record: Record, store: MediaStore) -> Row:
    """Return a row of JSON lines or a JSON array: ``image`` for one picture, ``images`` for several."""
    return _row(record, store.value)


def _row(record: Record, value: Callable[[Medium], object], *, listed: bool = False) -> Row:
    media, text = media_then_text(record, "a row of columns")
    columns: Row = {}
    for modality, group in itertools.groupby(media, key=lambda medium: medium.modality):
        values = [value(medium) for medium in group]
        name = modality if len(values) == 1 and not listed else f"{modality}s"
        if modality in columns or f"{modality}s" in columns:
            raise not_held(f"columns cannot hold {modality} before and after another medium", "openai")
        columns[name] = values[0] if name == modality else values
    return _with_texts(record, columns, text)


def _with_texts(record: Record, columns: Row, text: str) -> Row:
    if record.id is not None:
        columns = {"id": record.id, **columns}
    if record.question is None and record.choices:
        what = "the choices stand in the text already, and columns would send them again"
        raise not_held(what, "openai")
    if record.question is None:
        own: Row = {"question": text} if text else {}
    else:
        own = {"hint": record.hint, "question": record.question, "options": list(record.choices) or None}
    own["answer"] = record.answer
    columns |= {name: value for name, value in own.items() if value is not None}
    for name, value in record.others.items():
        if name in columns or media_column(name):
            raise RowError(
                f"the column {shown(name)} has the name of a column that the format uses", "rename it", code="MM800"
            )
        columns[name] = value
    return columns


def listed_row(record: Record, store: MediaStore) -> Row:
    """Return a row of a table, where all rows have the same columns: media are lists, ``images``."""
    return _row(record, store.value, listed=True)


def file_row(record: Record, store: MediaStore) -> Row:
    """Return a row of Croissant: media are lists of the names of files."""
    return _row(record, lambda medium: store.file(store.read(medium), "media"), listed=True)


def text_row(record: Record, store: MediaStore) -> Row:
    """Return a row of CSV or TSV: cells are text, and lists JSON; ``image`` holds one picture or a list."""
    cells = {name[:-1] if media_column(name) and name[-1] == "s" else name: v for name, v in row(record, store).items()}
    return {name: value if isinstance(value, str) else _cell(name, value) for name, value in cells.items()}


def _cell(name: str, value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError:
        raise not_held(f"a cell cannot hold the {type(value).__name__} of {shown(name)}", "parquet") from None


def named_files(record: Record, store: MediaStore) -> Row:
    """Return a row of ``metadata.jsonl``: ``file_name`` for one medium, ``images_file_names`` for several.

    Raises:
        RowError: the row has no medium.
    """
    columns = _row(record, lambda medium: store.file(store.read(medium), "media"))
    named: Row = {}
    for name, value in columns.items():
        if not media_column(name):
            named[name] = value
        elif isinstance(value, list):
            named[f"{name}_file_names"] = value
        else:
            named["file_name" if "file_name" not in named else f"{name}_file_name"] = value
    if not any("file_name" in name for name in named):
        raise RowError(
            "the row has no medium, and each row of a media folder needs one", "write --to jsonl", code="MM715"
        )
    return named


def vlmevalkit_row(record: Record, store: MediaStore) -> Row:
    """Return a row of VLMEvalKit's TSV. An answer that is the number of a choice becomes its letter.

    A row without an id has its number as index, which is its id elsewhere too.

    Raises:
        RowError: the row has no picture, other media, or more choices than letters.
    """
    columns = text_row(record._replace(choices=()) if record.question is not None else record, store)
    others = [name for name in columns if media_column(name) and name != "image"]
    if "image" not in columns or others:
        raise not_held(f"vlmevalkit holds pictures, and the row has {', '.join(others) or 'none'}", "jsonl")
    if len(record.choices) > len(ascii_uppercase):
        raise RowError(f"the row has {len(record.choices)} choices", "give at most 26", code="MM800")
    made: Row = {"index": columns.pop("id", record.row), "image": columns.pop("image")}
    made |= {"question": columns.pop("question", ""), "hint": columns.pop("hint", "")}
    made |= dict(zip(ascii_uppercase, record.choices, strict=False))
    made["answer"] = columns.pop("answer", "")
    if type(record.answer) is int and 0 <= record.answer < len(record.choices):
        made["answer"] = ascii_uppercase[record.answer]
    return made | columns
