"""WebDataset: tar files whose members of one name belong to one row. Nothing is ever unpacked to disk."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

from mmprompt.datasets.dataset_file import DatasetFile
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.sample import LONGEST_ROW, Row, Sample, column_error, too_long
from mmprompt.datasets.span import Cuts, Span
from mmprompt.errors import DatasetError, MMPromptError, RowError, shown
from mmprompt.media.media_types import suffix_type
from mmprompt.targets.exact_json import Remark, loads

if TYPE_CHECKING:
    from typing_extensions import Self

_MOST_MEMBERS = 10_000
"""Members of one row."""

_LARGEST = 1 << 31
"""Bytes of all members of one row."""

_LONGEST_CLASS = 18
"""Digits of a number in ``KEY.cls``."""

_LONGEST_HEADER = 1 << 20
"""Bytes of a long name, or of the attributes of a member."""

_ATTRIBUTES = (b"L", b"K", b"x", b"g", b"X")
"""The types of headers that hold long names and attributes, of GNU, POSIX and Solaris."""

_TEXTS = {"txt", "text", "transcript", "caption"}


def read(source: DatasetFile, notes: Notes, thorough: bool = False) -> Iterator[Row]:
    """Yield a ``Sample`` for each group of members. Its id is the key: the name up to the first dot.

    The fields of ``KEY.json`` are columns. ``KEY.txt`` and ``KEY.cls`` are columns ``txt`` and ``cls``. Media are
    columns of their modality; if a row has several of one modality, all but the first keep their extension as name.

    Raises:
        DatasetError: the file is not a tar file, or is cut off.
    """
    del thorough
    with source.opened_span() as stream:
        yield from _samples(stream, source.name, notes, source.span.row)


def spans(source: DatasetFile, rows: int) -> Iterator[tuple[Span, int]]:
    """Yield spans of ``rows`` rows each, the last one shorter, and their numbers of rows. No member is read.

    Raises:
        DatasetError: as ``read``, or the file has attributes that hold for all members after them.
    """
    cuts, row, key = Cuts(rows), 0, ""
    with source.opened() as stream:
        try:
            with tarfile.open(fileobj=stream, mode="r:", tarinfo=_Header) as archive:
                for member in archive:
                    archive.members = []  # type: ignore[attr-defined]  # it keeps every header it has seen
                    split = _key_of(member.name)
                    if split is not None and member.isfile() and split[0] != key:
                        yield from cuts.at(member.offset, 1, row)
                        key, row = split[0], row + 1
                end, shared = archive.offset, archive.pax_headers
        except (tarfile.TarError, EOFError, OSError) as error:
            raise _damaged(source.name, error) from None
    if shared:
        raise DatasetError("the tar file has attributes for all members", "write it without them")
    yield from cuts.last(row, end)


def _damaged(file: str, error: Exception) -> DatasetError:
    return DatasetError(f"the tar file is damaged: {error}", "write it again").located(file=file)


class _Header(tarfile.TarInfo):
    """A header whose long names are bounded: they are read into memory before the member that they belong to."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Return the header in a block.

        Raises:
            ReadError: it announces a long name or attributes of more bytes than such a header has.
        """
        header = super().frombuf(buf, encoding, errors)
        if header.type in _ATTRIBUTES and header.size > _LONGEST_HEADER:
            raise tarfile.ReadError(f"a header of {header.size} bytes")
        return header


class _Members:
    """The members of one row, by extension. A fault in one is an error of the row; its other members are skipped."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.data: dict[str, bytes] = {}
        self.error: RowError | None = None
        self._bytes = 0

    def add(self, extension: str, member: tarfile.TarInfo, archive: tarfile.TarFile) -> None:
        self._bytes += member.size
        if extension in self.data:
            self.error = column_error(extension, "two members have this extension", "rename one of them", "MM015")
        elif self._bytes > _LARGEST or len(self.data) == _MOST_MEMBERS:
            what = f"the row has more than {_LARGEST >> 30} GiB or {_MOST_MEMBERS} members"
            self.error = RowError(what, "split it into several rows", code="MM017")
        elif member.size > LONGEST_ROW and not suffix_type(f"x.{extension.rpartition('.')[2]}"):
            self.error = too_long("the member").located(column=extension)
        if self.error is not None:
            self.data = {extension: b""}
            return
        opened = archive.extractfile(member)
        self.data[extension] = b"" if opened is None else opened.read()


def _samples(stream: BinaryIO, file: str, notes: Notes, row: int) -> Iterator[Row]:
    members = _Members("")
    try:
        with tarfile.open(fileobj=stream, mode="r|", bufsize=1 << 17, tarinfo=_Header) as archive:
            for member in archive:
                archive.members = []  # type: ignore[attr-defined]  # it keeps every header it has seen
                split = _key_of(member.name)
                if split is None or not member.isfile():
                    if not member.isdir():
                        what = f"{shown(member.name)} is not part of a row and is skipped"
                        notes.add([Remark("member", None, what, "MM023")], file, None)
                    continue
                if split[0] != members.key:
                    if members.data:
                        yield _sample(members, file, row, notes)
                        row += 1
                    members = _Members(split[0])
                members.add(split[1], member, archive)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise _damaged(file, error) from None
    if members.data:
        yield _sample(members, file, row, notes)


def _key_of(name: str) -> tuple[str, str] | None:
    """Return key and extension of a member, split at the first dot of its base name; None if it has none."""
    folder, slash, base = name.removeprefix("./").rpartition("/")
    stem, dot, extension = base.partition(".")
    if not dot or not stem or not extension:
        return None
    return folder + slash + stem, extension.lower()


def _sample(members: _Members, file: str, row: int, notes: Notes) -> Row:
    columns: dict[str, object] = {}
    media: dict[str, object] = {}
    fields: dict[str, object] = {}
    try:
        if members.error is not None:
            raise members.error
        for extension, data in members.data.items():
            _add(columns, media, fields, extension, data)
    except MMPromptError as error:
        return RowError(error.what, error.hint, error.where, code=error.code).located(file=file, sample=members.key)
    own = {**media, **columns}
    for name in [name for name in fields if name in own]:
        what = "this field of the .json is left out, because a member of the row has the same name"
        notes.add([Remark(f"field {name}", name, what, "MM023")], file, None)
    return Sample({**media, **fields, **own}, members.key, file, None, row, False)


def _add(
    columns: dict[str, object], media: dict[str, object], fields: dict[str, object], extension: str, data: bytes
) -> None:
    """Add a member to the columns of its row, and the fields of ``KEY.json`` to ``fields``.

    Raises:
        RowError: it is not JSON, or not UTF-8.
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
            fields.update(value)
        else:
            columns[extension] = value
        return
    if last not in _TEXTS and last != "cls":
        columns[extension] = data
        return
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise column_error(extension, f"it is not UTF-8 at byte {error.start}", "save it as UTF-8", "MM003") from None
    number = last == "cls" and text.strip().isdecimal() and len(text) <= _LONGEST_CLASS
    columns[extension] = int(text) if number else text
