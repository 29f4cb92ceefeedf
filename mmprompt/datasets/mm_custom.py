"""AISBench's ``mm_custom``: JSON lines of a medium's type, its paths, a question and an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mmprompt.datasets import jsonl
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.sample import Row
from mmprompt.datasets.source import Source
from mmprompt.errors import RowError, nearest, shown
from mmprompt.segments import Segment

TYPES = ("image", "video", "audio")


def read(source: Source, notes: Notes, thorough: bool = False) -> Iterator[Row]:
    """Yield a sample for each line: its columns, and ``content``, the segments of its media followed by its question.

    The text is never scanned for tags.
    """
    for sample in jsonl.read(source, notes, thorough, scanned=False):
        if isinstance(sample, RowError):
            yield sample
            continue
        try:
            content = content_of(sample.columns)
        except RowError as error:
            yield error.located(file=sample.file, line=sample.line, sample=sample.label)
            continue
        yield sample._replace(columns={**sample.columns, "content": content})


def content_of(columns: Mapping[str, object]) -> list[Segment]:
    """Return the media of ``path`` in order, then ``question`` as one text segment if the row has one.

    A question that is null stays a text segment whose value is None: whether it feeds a message is not judged here.

    Raises:
        RowError: a ``type`` other than image, video and audio, or a ``path`` that is not a path or list of paths.
    """
    modality = columns.get("type")
    if modality not in TYPES:
        raise RowError(f"unknown type {shown(modality)}", nearest(modality, TYPES)).located(column="type")
    path = columns.get("path")
    paths = path if isinstance(path, list) else [path]
    for each in paths:
        if not isinstance(each, str) or not each.strip():
            raise RowError(f"path {shown(each)} names no file", "give a path or a list of paths").located(column="path")
    if not paths:
        raise RowError("an empty list of paths", "give a path or a list of paths").located(column="path")
    content = [Segment(str(modality), each) for each in paths]
    if "question" in columns:
        question = columns["question"]
        content.append(Segment("text", question if question is None else str(question)))
    return content


def recognises(columns: Mapping[str, object]) -> bool:
    """Tell whether a first row is one of this format."""
    return columns.get("type") in TYPES and "path" in columns
