"""CSV and TSV files with a header line. Every cell is kept as text."""

from __future__ import annotations

import csv
import threading
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TextIO

from mmprompt.datasets.dataset_file import DatasetFile
from mmprompt.datasets.delimiters import cells_of, declared_delimiter, header_delimiter, how_to_mend, other_mark
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.sample import LONGEST_ROW, Row, Sample, id_of, too_long
from mmprompt.datasets.span import WHOLE, Cuts, Span
from mmprompt.datasets.utf8_text import BOM, as_text, broken, is_broken
from mmprompt.errors import DatasetError, RowError, shown
from mmprompt.targets.exact_json import Remark

LONGEST_CELL = 1 << 28
"""The most characters of a cell. Without a limit, a stray quote would read the rest of the file into memory."""

_PIECE = 1 << 17
_ORDINARY = 1 << 16  # a record below this never meets the csv module's limit of 128 KiB a cell


class _CellLimit:
    """The csv module's global limit on the length of a cell: raised while a reader needs it, then restored."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before = 0

    def enter(self) -> None:
        with self._lock:
            if not self._users:
                self._before = csv.field_size_limit(LONGEST_CELL)
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                csv.field_size_limit(self._before)


_LIMIT = _CellLimit()


_Record = tuple[int, list[str], "RowError | None"]


class _Records:
    """Iterates over the records of a text: the line where each begins, its cells, and its fault if it has one.

    ``line`` is that of the first one.
    """

    def __init__(self, text: TextIO | _CountedText, delimiter: str, head: bytes, line: int = 1) -> None:
        self._head = head
        self._line = line
        self._first: list[str] | None = [] if line == 1 else None
        self.marked = False
        self._fault: RowError | None = None
        self._size = 0
        self._raised = False
        self._ended = False
        self.delimiter = delimiter
        self._text = self._lines(text)
        self._reader = csv.reader(self._text, delimiter=delimiter)

    def is_declaration(self) -> bool:
        """Return whether the first record is a line such as ``sep=;``; if so, read on with its delimiter."""
        delimiter = declared_delimiter(self._first or ())
        if delimiter is None:
            return False
        self._first = None
        self._read_on(delimiter)
        return True

    def names(self, cells: list[str]) -> list[str]:
        """Return the names of the header, of which ``cells`` are the cells; read on with its delimiter."""
        header, self._first = self._first or [], None
        delimiter = header_delimiter(header, self.delimiter)
        if delimiter == self.delimiter:
            return cells
        self._read_on(delimiter)
        return cells_of(header, delimiter)

    def _read_on(self, delimiter: str) -> None:
        """Read the records that follow with another delimiter."""
        self._line = self.next_line
        self.delimiter = delimiter
        self._reader = csv.reader(self._text, delimiter=delimiter)

    @property
    def next_line(self) -> int:
        """The line after the last record."""
        return self._reader.line_num + self._line

    def _lines(self, text: TextIO | _CountedText) -> Iterator[str]:
        """Yield lines to the csv module; check what it does not: size, UTF-8, and NUL characters."""
        for line in iter(partial(text.readline, LONGEST_ROW + 1), ""):
            self._size += len(line)
            if self._size > LONGEST_ROW:
                self._fault = self._fault or too_long()
                line = _quotes_of(text, line)  # noqa: PLW2901  # they say where the row ends
            if self._first is not None:
                if not self._first:
                    self.marked = line.startswith(BOM)
                    line = line.removeprefix(BOM)  # noqa: PLW2901  # the mark does not belong to the first name
                self._first.append(line)
            if self._size > _ORDINARY and not self._raised:
                self._raised = True
                _LIMIT.enter()
            if self._fault is None and is_broken(line):
                self._fault = broken(line, self._head)
            if "\0" in line:
                self._fault = self._fault or RowError("the row holds a NUL character", "remove it", code="MM013")
                line = line.replace("\0", "")  # noqa: PLW2901  # Python 3.10 would refuse it, later versions not
            yield line
        self._ended = True

    def __iter__(self) -> Iterator[tuple[int, list[str], RowError | None]]:
        """Yield line number, cells and fault of each record that is not blank."""
        while True:
            begins = self.next_line
            cells: list[str] = []
            self._size = 0
            self._fault = None
            try:
                cells = next(self._reader)
                if self._ended:
                    self._fault = RowError(
                        "a quoted cell is not closed before the end of the file", "add the closing quote", code="MM008"
                    )
            except StopIteration:
                return
            except csv.Error as error:
                self._fault = RowError(
                    f"malformed CSV row: {error}", "quote cells, and double the quotes in them", code="MM008"
                )
            finally:
                if self._raised:
                    self._raised = False
                    _LIMIT.leave()
            if self._fault is not None or cells:
                yield begins, cells, self._fault


def _quotes_of(text: TextIO | _CountedText, line: str) -> str:
    """Read to the end of a line that begins with ``line``; return a short one that opens or closes a quote as it does.

    Nothing else of the line counts: its row is too long.
    """
    quotes = line.count('"')
    while line and not line.endswith(("\r", "\n")):
        line = text.readline(_PIECE)
        quotes += line.count('"')
    return '"\n' if quotes % 2 else "\n"


class _CountedText:
    """A text that counts the bytes of the lines that were read."""

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self.bytes = 0

    def readline(self, most: int) -> str:
        line = self._text.readline(most)
        self.bytes += len(line) if line.isascii() else len(line.encode("utf-8", "surrogateescape"))
        return line


def read(
    source: DatasetFile, notes: Notes, thorough: bool = False, delimiter: str = ",", scanned: bool = True
) -> Iterator[Row]:
    """Yield a ``Sample`` for each record, or a ``RowError`` if its cells do not match the header.

    Raises:
        DatasetError: the header is missing, or has an empty or repeated name.
    """
    del thorough  # CSV has only one way of reading
    file, span = source.name, source.span
    row = span.row
    with source.opened() as stream, as_text(stream) as text:
        records = _Records(text, delimiter, source.head)
        content = iter(records)
        header = _header(records, content, file)
        if not span.start:
            notes.add(_header_remarks(header, records, delimiter), file, 1)
        if span == WHOLE:
            yield from _samples(content, header, file, row, scanned)
            return
    with source.opened_span() as stream, as_text(stream) as text:
        records = _Records(text, records.delimiter, source.head, span.line)
        content = iter(records)
        if not span.start:
            _header(records, content, file)
        yield from _samples(content, header, file, row, scanned)


def _samples(content: Iterator[_Record], header: list[str], file: str, row: int, scanned: bool) -> Iterator[Row]:
    """Yield the rows of records; ``row`` is the number of the first one."""
    width, hint = len(header), "quote cells that hold a delimiter or line break"
    if mark := other_mark(header):
        hint = f"{shown(mark)} separates the names of the header: {how_to_mend(mark)}"
    for line, cells, fault in content:
        if fault is not None:
            yield fault.located(file=file, line=line)
        elif len(cells) == width:
            columns = dict(zip(header, cells, strict=True))
            yield Sample(columns, id_of(columns, row), file, line, row, scanned)
        elif _is_blank(cells):
            continue
        else:
            yield RowError(f"the row has {len(cells)} cells, but the header has {width}", hint, code="MM008").located(
                file=file, line=line
            )
        row += 1


def _is_blank(cells: list[str]) -> bool:
    """Return whether cells that are not as many as the header's are those of a blank line."""
    return len(cells) == 1 and not cells[0].strip()


def spans(source: DatasetFile, rows: int, delimiter: str = ",") -> Iterator[tuple[Span, int]]:
    """Yield spans of ``rows`` rows each, the last one shorter, and their numbers of rows. No span ends inside quotes.

    Raises:
        DatasetError: as ``read``.
    """
    cuts, row = Cuts(rows), 0
    with source.opened() as stream, as_text(stream) as text:
        counted = _CountedText(text)
        records = _Records(counted, delimiter, source.head)
        content = iter(records)
        width = len(_header(records, content, source.name))
        for _, cells, fault in content:
            row += fault is not None or len(cells) == width or not _is_blank(cells)
            yield from cuts.at(counted.bytes, records.next_line, row)
        yield from cuts.last(row, counted.bytes)


def _header_remarks(header: list[str], records: _Records, delimiter: str) -> Iterator[Remark]:
    """Yield what is odd about the header. ``delimiter`` is what separates the cells of the format."""
    if records.marked:
        yield Remark("bom", None, "begins with a byte order mark", "MM004")
    if records.delimiter != delimiter:
        what = f"{shown(records.delimiter)} separates the columns, so the file is read with it instead of a comma"
        yield Remark("delimiter", None, what, "MM026")
    if mark := other_mark(header):
        what = f"the header is one column, {shown(header[0])}, with {shown(mark)} in it; {how_to_mend(mark)}"
        yield Remark("one column", None, what, "MM022")


def _header(records: _Records, content: Iterable[_Record], file: str) -> list[str]:
    for line, cells, fault in content:
        if fault is not None:
            raise DatasetError(fault.what, fault.hint, code=fault.code).located(file=file, line=line)
        if records.is_declaration():
            continue
        header = records.names(cells)
        names: set[str] = set()
        for position, name in enumerate(header):
            if not name.strip():
                raise DatasetError(f"column {position + 1} of the header has no name", "name it", code="MM008").located(
                    file=file, line=line
                )
            if name in names:
                raise DatasetError(
                    f"the header names {shown(name)} twice", "rename one of the two", code="MM015"
                ).located(file=file, line=line)
            names.add(name)
        return header
    raise DatasetError("the file has no header", "begin the file with the names of its columns", code="MM014").located(
        file=file
    )
