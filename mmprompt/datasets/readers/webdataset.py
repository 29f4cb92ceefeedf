"""WebDataset: tar files whose members of one name belong to one row. Nothing is ever unpacked to disk."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import BinaryIO

from mmprompt.datasets.dataset_file import DatasetFile
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.sample import Row, Sample
from mmprompt.errors import DatasetError, MMPromptError, RowError, shown
from mmprompt.media.media_types import suffix_type
from mmprompt.targets.exact_json import Remark, loads

_MOST_MEMBERS = 10_000
"""Members of one row."""

_LARGEST = 1 << 31
"""Bytes of one member."""

_TEXTS = {"txt", "text", "transcript", "caption"}


def read(source: DatasetFile, notes: Notes, thorough: bool = False) -> Iterator[Row]:
    """Yield a ``Sample`` for each group of members. Its id is the key: the name up to the first dot.

    The fields of ``KEY.json`` are columns. ``KEY.txt`` and ``KEY.cls`` are columns ``txt`` and ``cls``. Media are
    columns of their modality; if a row has several of one modality, all but the first keep their extension as name.

    Raises:
        DatasetError: the file is no tar file, or is cut off.
    """
    del thorough
    with source.opened() as stream:
        yield from _samples(stream, source.name, notes)


def _samples(stream: BinaryIO, file: str, notes: Notes) -> Iterator[Row]:
    row = 0
    key = ""
    members: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=stream, mode="r|", bufsize=1 << 17) as archive:
            for member in archive:
                archive.members = []  # type: ignore[attr-defined]  # it keeps every header it has seen
                split = _key_of(member.name)
                if split is None or not member.isfile():
                    if not member.isdir():
                        notes.add([Remark("member", None, f"{shown(member.name)} is no part of a row")], file, None)
                    continue
                if split[0] != key and members:
                    yield _sample(key, members, file, row)
                    row += 1
                    members = {}
                key = split[0]
                members[split[1]] = _content(archive, member, file)
                if len(members) > _MOST_MEMBERS:
                    raise DatasetError(f"row {shown(key)} has more than {_MOST_MEMBERS} members", "check the tar file")
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DatasetError(f"the tar file is damaged: {error}", "write it again").located(file=file) from None
    if members:
        yield _sample(key, members, file, row)


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo, file: str) -> bytes:
    if member.size > _LARGEST:
        raise DatasetError(f"{shown(member.name)} has {member.size} bytes", "split it").located(file=file)
    opened = archive.extractfile(member)
    return b"" if opened is None else opened.read()


def _key_of(name: str) -> tuple[str, str] | None:
    """Return key and extension of a member, split at the first dot of its base name; None if it has none."""
    folder, slash, base = name.removeprefix("./").rpartition("/")
    stem, dot, extension = base.partition(".")
    if not dot or not stem or not extension:
        return None
    return folder + slash + stem, extension.lower()


def _sample(key: str, members: dict[str, bytes], file: str, row: int) -> Row:
    columns: dict[str, object] = {}
    media: dict[str, object] = {}
    try:
        for extension, data in members.items():
            _add(columns, media, extension, data)
    except MMPromptError as error:
        return RowError(error.what, error.hint, error.where).located(file=file, sample=key)
    return Sample({**media, **columns}, key, file, None, row, False)


def _add(columns: dict[str, object], media: dict[str, object], extension: str, data: bytes) -> None:
    """Add a member to the columns of its row.

    Raises:
        RowError: it is no JSON, or no UTF-8.
    """
    last = extension.rpartition(".")[2]
    kind = suffix_type(f"x.{last}")
    if kind:
        modality = kind.partition("/")[0]
        media[extension if modality in media else modality] = {"bytes": data, "path": f"{extension}"}
        return
    if last == "json":
        try:
            value = loads(data)
        except MMPromptError as error:
            raise error.located(column=extension) from None
        if isinstance(value, dict) and extension == "json":
            for name, field in value.items():
                columns.setdefault(name, field)
        else:
            columns[extension] = value
        return
    if last not in _TEXTS and last != "cls":
        columns[extension] = data
        return
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RowError(f"it is not UTF-8 at byte {error.start}", "save it as UTF-8").located(column=extension) from None
    columns[extension] = int(text) if last == "cls" and text.strip().isdecimal() else text
