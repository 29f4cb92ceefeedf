"""Writes a dataset file anew with the values that mend its findings. All other bytes stay as they are."""

from __future__ import annotations

import io
import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import BinaryIO, NamedTuple

from mmprompt.check.kept import KeptFix
from mmprompt.check.store import Store
from mmprompt.datasets.delimiters import cells_of, declared_delimiter, header_delimiter
from mmprompt.errors import TaskError, shown
from mmprompt.media.outputs import opened_input

DELIMITERS = {"csv": ",", "tsv": "\t", "vlmevalkit": "\t"}
FORMATS = ("jsonl", "mm_custom", *DELIMITERS)
"""The formats of the files that can be mended."""

_BOM = b"\xef\xbb\xbf"
_MARK = "MM004"
_BLANKS = re.compile(r"[ \t\r\n]*")


class Record(NamedTuple):
    """A record of a file, from its 1-based ``line``, as it was and as it is now."""

    line: int
    old: bytes
    new: bytes


def require_mendable(path: str, kind: str, encoding: str | None) -> None:
    """Refuse a file that cannot be mended.

    Raises:
        TaskError: its format is another one, or it is no plain file of UTF-8.
    """
    if kind not in FORMATS:
        raise TaskError(
            f"--fix writes JSON lines, CSV and TSV, and {shown(path)} is {kind}",
            f"convert it first: mmprompt convert {path} data.jsonl --to jsonl",
        )
    if not os.path.isfile(path):
        raise TaskError(f"--fix mends files, and {shown(path)} is none", "name one file")
    if encoding is not None or path.endswith((".gz", ".zst")):
        raise TaskError(f"--fix writes plain UTF-8, and {shown(path)} is not", "unpack or convert it first")


class MendedFile:
    """A file as it is after its fixes.

    Args:
        path: the file.
        kind: its format, one of ``FORMATS``.
        store: has the fixes; findings that are mended are dropped from it.
        unsafe: apply also fixes that may change the meaning of a row.
    """

    def __init__(self, path: str, kind: str, store: Store, *, unsafe: bool = False) -> None:
        self._path = path
        self._kind = kind
        self._store = store
        self._unsafe = unsafe
        self._delimiter = ""
        self.count = 0

    def records(self) -> Iterator[Record]:
        """Yield all records, mended. ``count`` is then the number of findings that are gone."""
        marked = self._store.has(_MARK, self._path)
        fixes = self._store.fixes(self._path, unsafe=self._unsafe)
        by_line = itertools.groupby(fixes, lambda fix: fix.line)
        waiting = next(by_line, None)
        with opened_input(self._path) as file:
            header: Sequence[str] = ()
            line = 1
            while record := self._record(file, delimited=not header or (waiting or (0,))[0] == line):
                new = record
                if line == 1 and marked and record.startswith(_BOM):
                    new = record.removeprefix(_BOM)
                    self.count += self._store.drop_all(_MARK, self._path)
                if self._kind in DELIMITERS and not header:
                    header = self._names(new)
                if waiting is not None and waiting[0] == line:
                    new = self._mended(new, list(waiting[1]), header)
                    waiting = next(by_line, None)
                yield Record(line, record, new)
                line += record.count(b"\n")

    def _names(self, record: bytes) -> Sequence[str]:
        """Return the names of a header, and mend cells with its delimiter from now on; none for a line ``sep=;``."""
        lines = io.StringIO(record.removeprefix(_BOM).decode("utf-8", "replace"), newline="").readlines()
        if not self._delimiter and (declared := declared_delimiter(lines)):
            self._delimiter = declared
            return ()
        self._delimiter = header_delimiter(lines, self._delimiter or DELIMITERS[self._kind])
        return cells_of(lines, self._delimiter)

    def _record(self, file: BinaryIO, *, delimited: bool) -> bytes:
        """Return the next line; of CSV with ``delimited`` the next record, whose cells may hold line breaks."""
        record = file.readline()
        if self._kind in DELIMITERS and delimited:
            while record.count(b'"') % 2 and (more := file.readline()):
                record += more
        if self._kind in DELIMITERS and b"\r" in record.replace(b"\r\n", b""):
            what = f"{shown(self._path)} has carriage returns that end no line"
            raise TaskError(what, "save it with plain line ends, or remove them")
        return record

    def _mended(self, record: bytes, fixes: Iterable[KeptFix], header: Sequence[str]) -> bytes:
        """Return a record with its fixes; one whose column is not there is left out."""
        text = record.decode("utf-8", "surrogateescape")
        replace = partial(_in_object, text.isascii())
        if self._kind in DELIMITERS:
            replace = partial(_in_cells, self._delimiter, header)
        changed: set[str] = set()
        for fix in fixes:
            mended = replace(text, fix, fix.column in changed)
            if mended is not None:
                text = mended
                changed.add(fix.column)
                self.count += self._store.drop(fix)
        return text.encode("utf-8", "surrogateescape")


def _new_value(value: object, fix: KeptFix, changed: bool) -> object:
    """Return a column's value after a fix; None if it cannot be applied. ``changed``: another fix was applied."""
    if fix.old is None:
        return None if changed else fix.value
    if isinstance(value, str):
        new: object = value.replace(fix.old, str(fix.value))
    elif isinstance(value, list):
        new = [fix.value if element == fix.old else element for element in value]
    else:
        return None
    return new if new != value or changed else None


def _in_object(ascii_only: bool, text: str, fix: KeptFix, changed: bool) -> str | None:
    """Return a JSON object with a new value; None if it cannot be placed."""
    span = _value_span(text, fix.column)
    if span is None:
        return None
    start, end, old = span
    value = _new_value(old, fix, changed)
    return None if value is None else text[:start] + json.dumps(value, ensure_ascii=ascii_only) + text[end:]


def _value_span(text: str, key: str) -> tuple[int, int, object] | None:
    """Return where the value of a key of an object stands, and the value; of a repeated key the last one."""
    decode = json.JSONDecoder(strict=False).raw_decode
    found = None
    at = _after_blanks(text, text.find("{") + 1)
    while at < len(text) and text[at] == '"':
        name, at = decode(text, at)
        start = _after_blanks(text, text.index(":", at) + 1)
        value, at = decode(text, start)
        if name == key:
            found = start, at, value
        at = _after_blanks(text, at)
        at = _after_blanks(text, at + 1) if text[at : at + 1] == "," else len(text)
    return found


def _after_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return at if blanks is None else blanks.end()


def _in_cells(delimiter: str, header: Sequence[str], text: str, fix: KeptFix, changed: bool) -> str | None:
    """Return a record of CSV with a new cell; None if it cannot be placed."""
    spans = list(_cell_spans(text, delimiter))
    if fix.column not in header or len(spans) != len(header):
        return None
    start, end = spans[header.index(fix.column)]
    old = text[start:end]
    quoted = old.startswith('"')
    value = old[1:-1].replace('""', '"') if quoted else old
    new = _new_value(value, fix, changed)
    if not isinstance(new, str):
        return None
    if quoted or any(mark in new for mark in (delimiter, '"', "\n", "\r")):
        new = '"' + new.replace('"', '""') + '"'
    return text[:start] + new + text[end:]


def _cell_spans(text: str, delimiter: str) -> Iterator[tuple[int, int]]:
    """Yield where each cell of a record begins and ends, with its quotes."""
    cell = re.compile(rf'(?:"(?:[^"]|"")*"|[^{delimiter}"\r\n][^{delimiter}\r\n]*)?')
    at = 0
    while True:
        found = cell.match(text, at)
        end = at if found is None else found.end()
        yield at, end
        if text[end : end + 1] != delimiter:
            return
        at = end + 1


def difference(path: str, written: str, records: Iterable[Record]) -> Iterator[bytes]:
    """Yield the changed records as a unified difference without context."""
    begun = False
    shift = 0
    for line, old, new in records:
        before, after = old.count(b"\n") or 1, new.count(b"\n") or 1
        if old != new:
            if not begun:
                yield f"--- {path}\n+++ {written}\n".encode()
                begun = True
            yield f"@@ -{line},{before} +{line + shift},{after} @@\n".encode()
            yield from [_marked(b"-", each) for each in old.splitlines(keepends=True)]
            yield from [_marked(b"+", each) for each in new.splitlines(keepends=True)]
            shift += after - before


def _marked(sign: bytes, line: bytes) -> bytes:
    return sign + line if line.endswith(b"\n") else sign + line + b"\n\\ No newline at end of file\n"
