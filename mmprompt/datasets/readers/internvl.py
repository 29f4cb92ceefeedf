"""InternVL's meta file: for each dataset a ``root`` for its media and an ``annotation`` file of dialogues."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import islice

from mmprompt.datasets import jsonl
from mmprompt.datasets.dataset_file import DatasetFile
from mmprompt.datasets.json_rows import Member
from mmprompt.datasets.json_rows import read as read_array
from mmprompt.datasets.layouts.conversations import MEDIA
from mmprompt.datasets.list_cells import list_of_cell
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.readers import json_members
from mmprompt.datasets.sample import Row, Sample
from mmprompt.errors import DatasetError, MediaError, RowError, shown
from mmprompt.media.file_errors import MissingFileError
from mmprompt.media.files import GuardedFiles
from mmprompt.media.policy import MediaPolicy
from mmprompt.targets.exact_json import Remark

_MOST_TIMES = 1000


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
        times = _times(entry)
        annotations = _annotations(entry, source)
        reader = read_array if annotations.head.lstrip()[:1] == b"[" else jsonl.read
        most = None if times >= 1 else int(times * sum(1 for _ in reader(annotations, Notes(), False)))
        for time in range(max(1, int(times))):
            for sample in islice(reader(annotations, Notes() if time else notes, thorough), most):
                yield sample if isinstance(sample, RowError) else _rooted(sample, root, row, time)
                row += 1
        if times != 1:
            remark = Remark(f"repeats {entry.id}", "repeat_time", _said(times, most), "MM023")
            notes.add([remark], source.name, entry.line)


def _annotations(entry: Sample, source: DatasetFile) -> DatasetFile:
    name = entry.columns.get("annotation")
    if not isinstance(name, str) or not name:
        raise entry.located(DatasetError("the entry names no annotation file", "give 'annotation'")).located(
            column="annotation"
        )
    files = GuardedFiles(MediaPolicy(() if source.root is None else (source.root,)))

    def opened(path: str, flags: int) -> int:  # noqa: ARG001  # what open passes
        try:
            return files.descriptor(name)
        except MediaError as error:
            raise entry.located(_refused(name, error)).located(column="annotation") from None

    return DatasetFile(os.path.join(source.root or os.curdir, name), opener=opened)


def _refused(name: str, error: MediaError) -> DatasetError:
    """Return the error of an annotation file that may not be read."""
    if isinstance(error, MissingFileError):
        return DatasetError(f"no such annotation file: {shown(name)}", "check 'annotation'", code=error.code)
    if "media root" in error.what:
        what = f"the annotation file {shown(name)} does not lie below the meta file's folder"
        return DatasetError(what, "copy the meta file to a folder above it", code=error.code)
    return DatasetError(f"the annotation file {error.what}", "name a file of dialogues", code=error.code)


def _times(entry: Sample) -> float:
    """Return how often the rows of a set come; below 1 the share of them that comes."""
    times = entry.columns.get("repeat_time")
    if times is None:
        return 1
    if (
        isinstance(times, (int, float))
        and not isinstance(times, bool)
        and (0 <= times < 1 or (1 <= times <= _MOST_TIMES and times == int(times)))
    ):
        return times
    hint = f"give a whole number up to {_MOST_TIMES}, or a share between 0 and 1"
    raise entry.located(
        DatasetError(f"repeat_time is {shown(times)}", hint, code="MM007").located(column="repeat_time")
    )


def _said(times: float, most: int | None) -> str:
    if most is not None:
        return f"repeat_time is {times:g}: only the first rows come, {most} of them"
    return f"repeat_time is {times:g}: its rows come {times:g} times, the second time with ids such as 7#2"


def _rooted(sample: Sample, root: str, row: int, time: int) -> Sample:
    columns = dict(sample.columns)
    for names in MEDIA.values():
        for name in names:
            if columns.get(name) not in (None, ""):
                placed = [_in(root, item) for item in list_of_cell(columns[name])]
                columns[name] = placed if isinstance(columns[name], (list, tuple)) else placed[0]
    own = f"{sample.id}#{time + 1}" if time else sample.id
    return sample._replace(columns=columns, row=row, id=own if "id" in sample.columns else row, scanned=False)


def _in(root: str, item: object) -> object:
    return os.path.join(root, item) if isinstance(item, str) else item
