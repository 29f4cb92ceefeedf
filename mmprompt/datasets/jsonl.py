"""JSON lines: one object a line."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO

import orjson

from mmprompt.datasets.dataset_file import DatasetFile
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.sample import LONGEST_ROW, Row, Sample, id_of, too_long
from mmprompt.datasets.span import Cuts, Span
from mmprompt.errors import RowError
from mmprompt.targets.exact_json import BOM, Remark, faithful, loads_noting

_NONE: frozenset[str] = frozenset()
_PIECE = 1 << 17
_BLOCK = 1 << 23
_HEAD = 64
_NEWLINE, _BLANK = 10, 32
_new: Any = tuple.__new__  # half the cost of the constructor, once a row

_NAMES = {dict: "an object", list: "an array", str: "a string", bool: "true or false", type(None): "null"}


def read(source: DatasetFile, notes: Notes, thorough: bool = False, scanned: bool = True) -> Iterator[Row]:
    """Yield a ``Sample`` for each line that is not blank, or a ``RowError`` if the line is not a JSON object.

    ``thorough`` reads every line with Python's ``json``, which alone can find repeated keys. ``scanned``: the texts of
    the rows may hold AIS tags.
    """
    first = source.span.line
    blank = first - source.span.row
    with source.opened_span() as stream:
        for number, line in enumerate(iter(partial(stream.readline, LONGEST_ROW + 1), b""), first):
            if len(line) > LONGEST_ROW:
                _skip_rest(stream, line)
            row = _read_row(source, notes, line, number, number - blank, thorough=thorough, scanned=scanned)
            if row is None:
                blank += 1
            else:
                yield row


def _read_row(
    source: DatasetFile, notes: Notes, line: bytes, number: int, row: int, *, thorough: bool, scanned: bool
) -> Row | None:
    """Return the row of a line, of which the rest is gone if it is too long; None for a blank line."""
    if len(line) > LONGEST_ROW:
        return too_long().located(file=source.name, line=number)
    columns = None if thorough else _read_plainly(line)
    remarks: tuple[Remark, ...] = ()
    if columns is None:
        if line.isspace() or line.strip() == BOM:
            return None
        try:
            columns, remarks = _read_carefully(line)
        except RowError as error:
            return _hinted(error, line, source.head).located(file=source.name, line=number)
        notes.add(remarks, source.name, number)
    name = columns.get("id")
    if name is None:
        name = id_of(columns, row)
    made: Sample = _new(Sample, (columns, name, source.name, number, row, scanned, None, remarks, _NONE, None))
    return made


def _read_plainly(line: bytes) -> dict[str, object] | None:
    """Return the columns of a line if orjson gives them as they stand; None if the line has to be read with care."""
    try:
        columns: dict[str, object] = orjson.loads(line)
        for value in columns.values():
            if type(value) is not str:  # a row of text pays for no more than this look
                return columns if faithful(columns) else None
    except (orjson.JSONDecodeError, AttributeError, RowError):  # no JSON, no object, too deep
        return None
    return columns


def _skip_rest(stream: BinaryIO, line: bytes) -> None:
    """Read the rest of a line, piece by piece."""
    while line and not line.endswith(b"\n"):
        line = stream.readline(_PIECE)


def _hinted(error: RowError, line: bytes, head: bytes) -> RowError:
    """Return the error of a line, with the encoding that a file with this head may have if it is not UTF-8."""
    if error.code == "MM003":
        from mmprompt.datasets.likely_encoding import encoding_hint  # noqa: PLC0415  # only for a fault

        error.hint = encoding_hint(line, head)
    return error


def _read_carefully(line: bytes) -> tuple[dict[str, object], tuple[Remark, ...]]:
    value, remarks = loads_noting(line)
    if not isinstance(value, dict):
        raise RowError(
            f"a row must be an object, and this one is {type_name(value)}", "write one JSON object a line", code="MM007"
        )
    return value, remarks


def type_name(value: object) -> str:
    """Return the JSON name of the type of ``value``, with its article."""
    return _NAMES.get(type(value), "a number")


def spans(source: DatasetFile, rows: int) -> Iterator[tuple[Span, int]]:
    """Yield spans of ``rows`` rows each, the last one shorter, and their numbers of rows. No line is parsed.

    Raises:
        DatasetError: the file cannot be read.
    """
    import numpy as np  # noqa: PLC0415  # only needed here

    cuts, line, row, at = Cuts(rows), 1, 0, 0
    lead: bytes | None = b""  # of the line that the blocks before left open, as long as it may be blank
    with source.opened() as stream:
        while block := stream.read(_BLOCK):
            view = np.frombuffer(block, dtype=np.uint8)
            starts = np.flatnonzero(view == _NEWLINE) + 1
            if len(starts):
                is_row = np.ones(len(starts), dtype=np.int64)
                is_row[0] = not _is_blank(lead, block[: starts[0]])
                first_bytes = view[starts[:-1]]
                for each in np.flatnonzero((first_bytes <= _BLANK) | (first_bytes == BOM[0])).tolist():
                    is_row[each + 1] = not _is_blank(b"", block[starts[each] : starts[each + 1]])
                rows_at = row + np.cumsum(is_row)
                while (found := int(np.searchsorted(rows_at, cuts.next_row))) < len(starts):
                    yield from cuts.at(at + int(starts[found]), line + found + 1, int(rows_at[found]))
                line, row, lead = line + len(starts), int(rows_at[-1]), b""
            lead = _open_line(lead, block[starts[-1] if len(starts) else 0 :])
            at += len(block)
    yield from cuts.last(row + (not _is_blank(lead, b"") if lead != b"" else 0), at)


def _is_blank(lead: bytes | None, rest: bytes) -> bool:
    """Return whether a line is blank; ``lead`` is its beginning, None if that is not."""
    return lead is not None and (lead + rest).strip() in (b"", BOM)


def _open_line(lead: bytes | None, more: bytes) -> bytes | None:
    """Return the beginning of a line that goes on; None if it cannot become blank."""
    if lead is None or (more and (lead + more[:_HEAD]).strip() and not BOM.startswith((lead + more[:_HEAD]).strip())):
        return None
    return lead + more
