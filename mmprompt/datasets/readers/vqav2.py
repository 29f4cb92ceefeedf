"""VQAv2: a file with ``questions``, joined with the file of ``annotations`` beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial

from mmprompt.datasets.dataset_file import DatasetFile
from mmprompt.datasets.json_rows import Member, head_members
from mmprompt.datasets.layouts.layout import beside, text_of, with_columns
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.readers import json_members
from mmprompt.datasets.readers.join import JoinTable, join_table
from mmprompt.datasets.sample import Row, Sample, column_error, each
from mmprompt.errors import DatasetError, RowError, shown
from mmprompt.targets.exact_json import Remark

_SUBSET = re.compile(r"(train|val|test)(?:-dev)?(20\d\d)")


def recognises(members: list[Member]) -> bool:
    """Return whether a JSON object is a file of VQAv2's questions."""
    keys = {member.key: member.begins for member in members}
    return keys.get("questions") == "[{" and not keys.keys().isdisjoint(("data_subtype", "task_type", "data_type"))


def read(source: DatasetFile, notes: Notes, thorough: bool = False) -> Iterator[Row]:
    """Yield a ``Sample`` for each question: its picture, its text, and as ``answer`` the answers of ten people.

    Raises:
        DatasetError: the file does not say which pictures its questions are about.
    """
    subset = _subset(source)
    annotations = annotations_beside(source.name)
    with join_table() as table:
        joins = "no file of annotations lies beside it, so its rows have no answers"
        if annotations is not None:
            joins = f"joined with {os.path.basename(annotations)}, which lies beside it"
        notes.add([Remark("annotations", None, joins, "MM025")], source.name, None)
        if annotations is not None:
            for row in json_members.read(DatasetFile(annotations), Notes(), False, "annotations"):
                if isinstance(row, RowError):
                    raise DatasetError(row.what, row.hint, row.where, code=row.code)
                table.add(row.columns.get("question_id"), row.columns)
        questions = json_members.read(source, notes, thorough, "questions")
        yield from each(questions, partial(_asked, subset=subset, table=table if annotations else None))


def _asked(row: Sample, subset: str, table: JoinTable | None) -> Sample:
    number = row.columns.get("image_id")
    if type(number) is not int:
        raise column_error("image_id", "'image_id' is not a number", "give the number of a COCO picture", "MM007")
    new = {"image": beside(row, f"COCO_{subset}_{number:012d}.jpg", subset), "question": text_of(row, "question")}
    return with_columns(row, new if table is None else {**new, **_annotation(row, table)})


def _annotation(row: Sample, table: JoinTable) -> dict[str, object]:
    partners = table.of(row.columns.get("question_id"))
    found = partners[0] if partners else None
    if not isinstance(found, dict) or not isinstance(found.get("answers"), list):
        hint = "give the annotations of these questions, or move the other file away"
        raise column_error("question_id", "the question has no annotation with answers", hint, "MM024")
    answers = [a.get("answer") if isinstance(a, dict) else None for a in found["answers"]]
    if not answers or None in answers:
        raise column_error("answers", "an answer of the annotation is empty", "give each a text", "MM701")
    kept = {k: v for k, v in found.items() if k not in ("answers", "question_id", "image_id")}
    return {"answer": answers, **kept}


def _subset(source: DatasetFile) -> str:
    for member in head_members(source.head):
        if member.key == "data_subtype" and isinstance(member.value, str):
            named = _SUBSET.match(member.value)
            break
    else:
        named = _SUBSET.search(os.path.basename(source.name))
    if named is None:
        hint = 'write "data_subtype": "val2014" at the beginning of the file'
        raise DatasetError(f"{shown(source.name)} does not say which COCO pictures it is about", hint)
    return named[1] + named[2]  # test-dev2015 has the pictures of test2015


def annotations_beside(name: str) -> str | None:
    """Return the file of annotations that lies beside a file of questions."""
    folder, base = os.path.split(name)
    named = base.replace("questions", "annotations")
    for wanted in (named.replace("OpenEnded_", ""), named):
        path = os.path.join(folder, wanted)
        if wanted != base and os.path.isfile(path):
            return path
    return None
