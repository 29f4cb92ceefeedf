"""InternVL's meta file: for each dataset a ``root`` for its media and an ``annotation`` file of dialogues."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from mmprompt.datasets import jsonl
from mmprompt.datasets.dataset_file import DatasetFile
from mmprompt.datasets.json_rows import read as read_array
from mmprompt.datasets.layouts.conversations import MEDIA
from mmprompt.datasets.list_cells import list_of_cell
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.readers import json_members
from mmprompt.datasets.readers.json_members import Member
from mmprompt.datasets.sample import Row, Sample
from mmprompt.errors import DatasetError, RowError, shown
from mmprompt.targets.exact_json import Remark

_REPEATS = "repeat_time is not applied: each row comes once"


def recognises(members: list[Member]) -> bool:
    """Return whether a JSON object is a meta file."""
    first = members[0].value if members else None
    return isinstance(first, Mapping) and {"root", "annotation"} <= first.keys()


def read(source: DatasetFile, notes: Notes, thorough: bool = False) -> Iterator[Row]:
    """Yield the rows of all annotation files, their media below the ``root`` of each.

    Raises:
        DatasetError: an entry names no annotation file, or one that does not lie below the meta file's folder.
    """
    row = 0
    for entry in json_members.read(source, notes, thorough):
        if isinstance(entry, RowError):
            raise DatasetError(entry.what, entry.hint, entry.where, code=entry.code)
        root = entry.columns.get("root")
        if not isinstance(root, str):
            raise entry.located(DatasetError("the entry names no root", "give 'root'").located(column="root"))
        if entry.columns.get("repeat_time", 1) != 1:
            notes.add([Remark("repeats", "repeat_time", _REPEATS, "MM023")], source.name, entry.line)
        annotations = _annotations(entry, source)
        reader = read_array if annotations.head.lstrip()[:1] == b"[" else jsonl.read
        for sample in reader(annotations, notes, thorough):
            yield sample if isinstance(sample, RowError) else _rooted(sample, root, row)
            row += 1


def _annotations(entry: Sample, source: DatasetFile) -> DatasetFile:
    name = entry.columns.get("annotation")
    if not isinstance(name, str) or not name:
        raise entry.located(DatasetError("the entry names no annotation file", "give 'annotation'")).located(
            column="annotation"
        )
    folder = os.path.realpath(source.root or os.curdir)
    path = os.path.join(source.root or os.curdir, name)
    if source.root is None or not os.path.realpath(path).startswith(os.path.join(folder, "")):
        what = f"the annotation file {shown(name)} does not lie below the meta file's folder"
        raise entry.located(DatasetError(what, "copy the meta file to a folder above it")).located(column="annotation")
    return DatasetFile(path)


def _rooted(sample: Sample, root: str, row: int) -> Sample:
    columns = dict(sample.columns)
    for names in MEDIA.values():
        for name in names:
            if columns.get(name) not in (None, ""):
                placed = [_in(root, item) for item in list_of_cell(columns[name])]
                columns[name] = placed if isinstance(columns[name], (list, tuple)) else placed[0]
    own = "id" in sample.columns
    return sample._replace(columns=columns, row=row, id=sample.id if own else row, scanned=False)


def _in(root: str, item: object) -> object:
    return os.path.join(root, item) if isinstance(item, str) else item
