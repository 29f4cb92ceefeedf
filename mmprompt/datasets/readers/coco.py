"""COCO captions: a row for each of ``images``, whose ``annotations`` hold its captions, the answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from mmprompt.datasets.dataset_file import DatasetFile
from mmprompt.datasets.json_rows import Member
from mmprompt.datasets.layouts.layout import beside, text_of, with_columns
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.readers import json_members
from mmprompt.datasets.readers.join import JoinTable, join_table
from mmprompt.datasets.sample import Row, Sample, column_error, each
from mmprompt.errors import DatasetError, RowError

_NAMES = frozenset(("file_name", "coco_url", "flickr_url"))
"""Columns that name the picture, which ``image`` holds."""

_SUBSET = re.compile(r"(?:train|val|test)20\d\d")


def recognises(members: list[Member]) -> bool:
    """Return whether a JSON object is a file of COCO captions."""
    held = {member.key: member for member in members}
    images = held.get("images")
    if images is None or images.begins != "[{" or held.keys().isdisjoint(("annotations", "licenses")):
        return False
    annotations = held["annotations"].value if "annotations" in held else None
    if isinstance(annotations, list):
        return _begins_with(annotations, "caption")
    pictures = images.value
    return not isinstance(pictures, list) or _begins_with(pictures, "file_name")


def _begins_with(values: list[object], key: str) -> bool:
    """Return whether the first value is an object with this key."""
    first = values[0] if values else None
    return isinstance(first, dict) and key in first


def read(source: DatasetFile, notes: Notes, thorough: bool = False) -> Iterator[Row]:
    """Yield a ``Sample`` for each picture, with its captions as ``answer``.

    Raises:
        DatasetError: the annotations are not captions.
    """
    found = _SUBSET.search(source.name)
    folders = (found[0],) if found else ()
    with join_table() as table:
        for row in json_members.read(source, notes, thorough, "annotations"):
            if isinstance(row, RowError):
                raise DatasetError(row.what, row.hint, row.where, code=row.code)
            if not isinstance(row.columns.get("caption"), str):
                hint = "give a file of captions, such as captions_val2017.json"
                raise row.located(DatasetError("an annotation has no caption", hint).located(column="caption"))
            table.add(row.columns.get("image_id"), row.columns["caption"])
        images = json_members.read(source, notes, thorough, "images")
        yield from each(images, partial(_captioned, table=table, folders=folders))


def _captioned(row: Sample, table: JoinTable, folders: tuple[str, ...]) -> Sample:
    captions = table.of(row.id)
    if not captions:
        raise column_error("id", "the picture has no caption", "give it one, or drop the picture", "MM701")
    picture = beside(row, text_of(row, "file_name"), *folders)
    return with_columns(row, {"image": picture, "answer": captions})._replace(sent=_NAMES)
