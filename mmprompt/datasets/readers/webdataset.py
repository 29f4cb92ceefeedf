"""WebDataset: tar files whose members of one name belong to one row. Nothing is ever unpacked to disk."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, cast

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

_LONGEST_HEADERS = 1 << 21
"""Bytes of all headers of a member."""

_BLOCK = 1 << 17

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
        archive = _Archive(stream, source.name)
        for member in archive.members():
            split = _key_of(member.name)
            if split is not None and member.isfile() and split[0] != key:
                yield from cuts.at(member.offset, 1, row)
                key, row = split[0], row + 1
        end, shared = archive.tar.offset, archive.tar.pax_headers
    if shared:
        raise DatasetError("the tar file has attributes for all members", "write it without them")
    yield from cuts.last(row, end)


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


class _Archive:
    """A tar file whose members come in order. It is also the stream that ``tarfile`` reads, and goes forward only.

    What is passed over is not read where the stream can seek. The headers of a member have a bound.

    Raises:
        DatasetError: what ``tarfile`` reads is no tar file.
    """

    def __init__(self, stream: BinaryIO, file: str) -> None:
        self._stream, self._file = stream, file
        self._at, self._left = 0, _LONGEST_HEADERS
        with self._faults():
            self.tar = tarfile.open(fileobj=cast("BinaryIO", self), mode="r:", tarinfo=_Header)  # noqa: SIM115  # it does not own the stream

    def members(self) -> Iterator[tarfile.TarInfo]:
        """Yield the header of each member.

        Raises:
            DatasetError: one is damaged, or the file is cut off.
        """
        while (member := self._next()) is not None:
            yield member

    def content(self, member: tarfile.TarInfo) -> bytes:
        """Return the bytes of the member whose header came last."""
        self._left += member.size
        with self._faults():
            opened = self.tar.extractfile(member)
            return b"" if opened is None else opened.read()

    def _next(self) -> tarfile.TarInfo | None:
        self._left = _LONGEST_HEADERS
        with self._faults():
            self.tar.members = []  # type: ignore[attr-defined]  # it keeps every header it has seen
            member = self.tar.next()
            if member is not None and member.size < 0:
                raise tarfile.ReadError(f"a member of {member.size} bytes")
            return member

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError, RecursionError, SystemError) as error:
            # SystemError: what a stream of Python 3.10 raises in place of a RecursionError
            of_tarfile = isinstance(error, (tarfile.TarError, EOFError, OSError))  # of others the words are odd
            what = f"the tar file is damaged: {error if of_tarfile else 'a header is malformed'}"
            raise DatasetError(what, "write it again").located(file=self._file) from None

    def tell(self) -> int:
        """Return the place in the stream."""
        return self._at

    def read(self, size: int) -> bytes:
        """Read what follows.

        Raises:
            ReadError: the headers of a member are too long.
        """
        self._left -= size
        if self._left < 0:
            raise tarfile.ReadError(f"the headers of a member are longer than {_LONGEST_HEADERS >> 20} MiB")
        data = self._stream.read(size)
        self._at += len(data)
        return data

    def seek(self, place: int) -> None:
        """Pass over what lies before a place, which may be behind the end."""
        left = place - self._at
        if left < 0:
            raise tarfile.ReadError("a member begins before the end of the one before it")
        if self._stream.seekable():
            self._stream.seek(left, os.SEEK_CUR)
        else:
            while left and (piece := self._stream.read(min(left, _BLOCK))):
                left -= len(piece)
        self._at = place


class _Members:
    """The members of one row, by extension. A fault in one is an error of the row; its other members are skipped."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.data: dict[str, bytes] = {}
        self.error: RowError | None = None
        self._bytes = 0

    def add(self, extension: str, member: tarfile.TarInfo, archive: _Archive) -> None:
        self._bytes += member.size
        if extension in self.data:
            self.error = column_error(extension, "two members have this extension", "rename one of them", "MM015")
        elif member.issparse():
            what = "the member is stored as a sparse file"  # a small file may announce any number of bytes
            self.error = column_error(extension, what, "write the tar file without --sparse", "MM001")
        elif self._bytes > _LARGEST or len(self.data) == _MOST_MEMBERS:
            what = f"the row has more than {_LARGEST >> 30} GiB or {_MOST_MEMBERS} members"
            self.error = RowError(what, "split it into several rows", code="MM017")
        elif member.size > LONGEST_ROW and not suffix_type(f"x.{extension.rpartition('.')[2]}"):
            self.error = too_long("the member").located(column=extension)
        if self.error is not None:
            self.data = {extension: b""}
            return
        self.data[extension] = archive.content(member)


def _samples(stream: BinaryIO, file: str, notes: Notes, row: int) -> Iterator[Row]:
    members, archive = _Members(""), _Archive(stream, file)
    for member in archive.members():
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
