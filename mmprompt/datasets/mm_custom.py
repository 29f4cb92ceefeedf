"""AISBench's ``mm_custom`` format: JSON lines with ``type``, ``path``, ``question`` and ``answer``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mmprompt.datasets import jsonl
from mmprompt.datasets.dataset_file import DatasetFile
from mmprompt.datasets.media_columns import media_of_cell
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.sample import Row, Sample, column_error, each
from mmprompt.errors import nearest, shown
from mmprompt.segments import Segment
from mmprompt.targets.exact_json import Remark

_NO_MEDIA = "it is missing, null or blank, so the row is sent without media"
TYPES = ("image", "video", "audio")
_SENT = frozenset(("type", "path", "question"))


def read(source: DatasetFile, notes: Notes, thorough: bool = False) -> Iterator[Row]:
    """Return a ``Sample`` for each line, with a column ``content``: segments of its media, then of its question.

    The text is not scanned for AIS tags.
    """

    def with_content(row: Sample) -> Sample:
        content = content_of(row.columns)
        if not media_of_cell(row.columns.get("path")):
            notes.add([Remark("no media", "path", _NO_MEDIA, "MM611")], row.file, row.line)
        return row._replace(columns={**row.columns, "content": content}, sent=_SENT)

    return each(jsonl.read(source, notes, thorough, scanned=False), with_content)


def content_of(columns: Mapping[str, object]) -> list[Segment]:
    """Return the media of ``path`` in order, then ``question`` as one text segment if the row has one.

    Empty paths are left out. A null question becomes a text segment whose value is None: whether a message needs it is
    decided later.

    Raises:
        RowError: ``type`` is not image, video or audio, or ``path`` is neither a path nor a list of paths.
    """
    modality = columns.get("type")
    if modality not in TYPES:
        raise column_error("type", f"unknown type {shown(modality)}", nearest(modality, TYPES), "MM213")
    paths = media_of_cell(columns.get("path"))
    for path in paths:
        if not isinstance(path, str):
            raise column_error("path", f"path {shown(path)} names no file", "give a path or a list of paths", "MM715")
    content = [Segment(str(modality), path) for path in paths]
    if "question" in columns:
        question = columns["question"]
        content.append(Segment("text", question if question is None else str(question)))
    return content


def recognises(columns: Mapping[str, object]) -> bool:
    """Return whether a first row has this format."""
    return columns.get("type") in TYPES and "path" in columns
