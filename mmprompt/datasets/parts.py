"""The files of a dataset, and how each is read: the format comes from its content unless the caller names it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from mmprompt.datasets import csv_rows, json_rows, jsonl, mm_custom, openai_chat
from mmprompt.datasets.column_roles import with_roles
from mmprompt.datasets.dataset_file import DatasetFile
from mmprompt.datasets.layouts import LAYOUTS, laid_out, layout_of, recognised
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.readers import coco, folder, internvl, json_members, media_folder, parquet, vqav2
from mmprompt.datasets.readers.patterns import Walk
from mmprompt.datasets.readers.references import with_referenced_pictures
from mmprompt.datasets.recognise import as_text_hint, binary_kind, recognise
from mmprompt.datasets.sample import Row, Sample
from mmprompt.datasets.span import WHOLE, Span
from mmprompt.errors import DatasetError, RowError, names_in_short, shown
from mmprompt.targets.exact_json import Remark, loads

Reader = Callable[[DatasetFile, Notes, bool], Iterator[Row]]


def _webdataset(source: DatasetFile, notes: Notes, thorough: bool) -> Iterator[Row]:
    from mmprompt.datasets.readers import webdataset  # noqa: PLC0415  # only for tar files

    return webdataset.read(source, notes, thorough)


def _webdataset_spans(source: DatasetFile, rows: int) -> Iterator[tuple[Span, int]]:
    from mmprompt.datasets.readers import webdataset  # noqa: PLC0415  # only for tar files

    return webdataset.spans(source, rows)


READERS: dict[str, Reader] = {
    "jsonl": jsonl.read,
    "mm_custom": mm_custom.read,
    "openai": openai_chat.read,
    "csv": csv_rows.read,
    "tsv": partial(csv_rows.read, delimiter="\t", scanned=False),
    "json": json_rows.read,
    "parquet": parquet.read,
    "arrow": parquet.read_arrow,
    "webdataset": _webdataset,
    "vqav2": vqav2.read,
    "coco": coco.read,
    "internvl": internvl.read,
}
"""From format of a file to its reader: a function that takes a file, collects notes, and yields samples and errors."""

SPANS: dict[str, Callable[[DatasetFile, int], Iterator[tuple[Span, int]]]] = {
    **dict.fromkeys(("jsonl", "mm_custom", "openai"), jsonl.spans),
    "csv": csv_rows.spans,
    "tsv": partial(csv_rows.spans, delimiter="\t"),
    "parquet": parquet.spans,
    "webdataset": _webdataset_spans,
}
"""From reader to a function that cuts a file into spans of so many rows. The files of other readers stay whole."""

FOLDERS = ("imagefolder", "audiofolder")
FORMATS = (*READERS, *FOLDERS, *LAYOUTS)
"""All names that ``--format`` takes."""

_MEMBERS = {"vqav2": vqav2.recognises, "internvl": internvl.recognises, "coco": coco.recognises}
_PLAIN = ("jsonl", "json", "csv", "tsv", "parquet", "arrow", "webdataset", "openai")
"""Readers whose rows may have a published layout."""

_INNER = {"internvl": "llava"}
"""Formats whose rows have a layout of their own."""


class Part(NamedTuple):
    """One file of a dataset: its reader, the layout of its rows if they have one, and the key that holds them.

    ``split`` is the split of its rows that is read, None for all. ``own_folder``: its media paths begin at its own
    folder, and those of another file at another. ``missing``: the shards that its set lacks; its notes name them.
    """

    source: DatasetFile
    reader: str
    layout: str | None = None
    key: str | None = None
    folder: bool = False
    split: str | None = None
    own_folder: bool = False
    missing: Sequence[str] = ()

    @property
    def files(self) -> list[str]:
        """The file, and the annotations that are read with it."""
        beside = vqav2.annotations_beside(self.source.name) if self.reader == "vqav2" else None
        return [self.source.name] if beside is None else [self.source.name, beside]

    @property
    def can_be_cut(self) -> bool:
        """Whether the file can be read in spans: it has offsets, and each of its rows is one of the dataset."""
        return self.reader in SPANS and self.source.can_be_cut and not self.folder and self.split is None

    @property
    def format(self) -> str:
        """The name of the format."""
        return "imagefolder" if self.folder else self.layout or self.reader


class Settings(NamedTuple):
    """How a dataset is read, as its caller asks for it; see ``open_dataset``."""

    format: str | None = None
    thorough: bool = False
    key: str | None = None
    columns: Mapping[str, str] | None = None
    join: Sequence[str] = ()
    split: str | None = None
    encoding: str | None = None
    templates: bool = False
    layouts: bool = True


def parts_of(paths: Sequence[str], asked: Settings) -> tuple[list[Part], str | None]:
    """Return the files of a dataset, and the folder if the caller gave a folder."""
    parts: list[Part] = []
    given = None
    walk = Walk()
    files = [file for pattern in paths for file in walk.files(pattern)]
    _refuse_repeated(files)
    for path in files:
        found = folder.Contents((path,))
        if path != "-" and os.path.isdir(path):
            if len(paths) > 1:
                raise DatasetError(f"{shown(path)} is a directory among several files", "give it alone")
            found = folder.files_of(path, asked.split)
            given = path if found.format != "imagefolder" else None
        split = None if found.split else asked.split
        opened = [
            _part(DatasetFile(file, asked.encoding, pipe=file in paths), found.format, asked) for file in found.files
        ]
        parts += [part._replace(split=split) for part in opened]
    if not parts:
        raise DatasetError("the list of files is empty", "name a file")
    if list(paths) == [part.source.name for part in parts[:1]]:
        return parts, given  # one shard, named by its caller
    missing = folder.missing_shards([part.source.name for part in parts])
    return [part._replace(missing=missing.get(part.source.name, ())) for part in parts], given


def _refuse_repeated(files: Sequence[str]) -> None:
    seen: set[str] = set()
    for file in files:
        own = os.path.abspath(file)
        if own in seen:
            raise DatasetError(f"{shown(file)} is named twice", "name it once; a pattern may hold it too")
        seen.add(own)


def _part(source: DatasetFile, kind: str | None, asked: Settings) -> Part:
    in_folder = "imagefolder" in (kind, asked.format) or asked.format == "audiofolder"
    in_folder |= asked.format is None and os.path.basename(source.name) in media_folder.METADATA
    reader = asked.format if asked.format in READERS else _reader_of(source, asked)
    members = json_rows.head_members(source.head) if reader == "json" and _is_object(source.head) else []
    key = asked.key
    if members and asked.format is None and key is None:
        reader = next((name for name, recognises in _MEMBERS.items() if recognises(members)), reader)
    if members and reader == "json":
        key = key or json_members.key_of_rows(source, members)
    elif reader == "json":
        json_rows.check_array(source.head)
    source.shorten()
    part = Part(source, reader, asked.format if asked.format in LAYOUTS else None, key, in_folder)
    if asked.format is not None or reader not in _PLAIN or not asked.layouts:
        return part
    rows = part._replace(reader="jsonl") if reader == "openai" else part
    layout = _recognised_layout(rows, asked)
    return part if layout is None else rows._replace(layout=layout)


def _is_object(head: bytes) -> bool:
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"


def _reader_of(source: DatasetFile, asked: Settings) -> str:
    """Return the reader of a file, recognised from its content."""
    kind = binary_kind(source.head)
    if kind in ("parquet", "arrow"):
        return kind
    if kind == "tar":
        return "webdataset"
    if kind is not None:
        if kind == "UTF-16":
            hint = "name its encoding: --encoding utf-16"
            raise DatasetError(f"{shown(source.name)} is a {kind} file", hint, code="MM003")
        raise DatasetError(f"{shown(source.name)} is a {kind} file", as_text_hint(source.name, kind))
    try:
        found = recognise(source.head, source.name)
    except DatasetError as error:
        raise DatasetError(error.what, f"{error.hint}; formats: {', '.join(FORMATS)}", code=error.code) from None
    if asked.format is not None and found in ("openai", "mm_custom"):
        return "jsonl"
    return "json" if asked.key is not None and found == "jsonl" and _is_object(source.head) else found


def _recognised_layout(part: Part, asked: Settings) -> str | None:
    """Return the layout of the first row that can be read, of a file that can be read again.

    A file that cannot be read at all is an error when its rows are asked for.
    """
    if part.source.root is None:
        line = part.source.head.lstrip().partition(b"\n")[0] if part.reader == "jsonl" else b""
        return _layout_of_line(line)
    plain = asked._replace(columns=None, join=())
    try:
        first = next((row for row in rows_of(part, plain, Notes()) if isinstance(row, Sample)), None)
    except DatasetError:
        return None
    layout = None if first is None else layout_of(first.columns)
    return None if layout is None else layout.name


def rows_of(
    part: Part, asked: Settings, notes: Notes, join: Callable[[Iterator[Row]], Iterator[Row]] | None = None
) -> Iterator[Row]:
    """Return the rows of one file, with the columns of their roles and as their layout has them.

    ``join`` adds the columns of other files.
    """
    if part.missing and not part.source.span.start:
        what = f"the set of shards lacks {names_in_short(part.missing)}, so their rows are missing too; add the files"
        notes.add([Remark("shards", None, what, "MM023")], part.source.name, None)
    if part.reader == "json" and (part.key is not None or _is_object(part.source.head)):
        rows = json_members.read(part.source, notes, asked.thorough, part.key)
    else:
        rows = READERS[part.reader](part.source, notes, asked.thorough)
    if part.folder:
        rows = media_folder.placed(rows, part.source, notes)
    if part.split is not None:
        rows = _of_split(rows, part.split)
    if join is not None:
        rows = join(rows)
    if asked.columns:
        rows = with_roles(rows, asked.columns, templates=asked.templates)
    layout = part.layout or (_INNER.get(part.reader) if asked.layouts else None)
    if layout == "vlmevalkit":
        rows = with_referenced_pictures(rows, partial(READERS[part.reader], part.source.part(WHOLE), Notes(), False))
    if layout is not None:
        return laid_out(rows, LAYOUTS[layout], notes)
    once = (
        part.source.root is None
        and asked.format is None
        and asked.layouts
        and part.reader in ("jsonl", "json", "csv", "tsv")
    )
    return recognised(rows, notes) if once else rows


def _layout_of_line(line: bytes) -> str | None:
    """Return the layout of the first row of a stream; its rows can be read only once."""
    try:
        columns = loads(line)
    except RowError:
        return None
    layout = layout_of(columns) if isinstance(columns, dict) else None
    return None if layout is None else layout.name


def _of_split(rows: Iterable[Row], split: str) -> Iterator[Row]:
    """Yield the rows whose column ``split`` is ``split``; a row without this column is an error."""
    for row in rows:
        if isinstance(row, RowError) or row.columns.get("split") == split:
            yield row
        elif "split" not in row.columns:
            what = f"the row does not say its split, and {shown(split)} is asked for"
            yield row.located(RowError(what, "leave out --split, or give the rows a column 'split'", code="MM006"))
