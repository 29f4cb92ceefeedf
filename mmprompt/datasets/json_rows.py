"""A JSON array of objects, read row by row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import NamedTuple, TextIO

from mmprompt.datasets.dataset_file import DatasetFile
from mmprompt.datasets.jsonl import type_name
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.sample import LONGEST_ROW, Row, Sample, id_of, too_long
from mmprompt.datasets.utf8_text import BOM, as_text, broken, is_broken
from mmprompt.errors import DatasetError, RowError, shown
from mmprompt.targets.exact_json import Remark, invalid, loads_noting, loads_with_remarks

Parse = Callable[[str], tuple[object, tuple[Remark, ...]]]

_CHUNK = 1 << 16
_BLANKS = " \t\r\n"
_NEAR_END = 12  # characters: a fault this close to the end of the window may be a literal or an escape cut in two
_REST = "correct it and read the file again: the rows after it cannot be found"


_MOST_OTHERS = 100
"""Elements at the beginning of an array of which one must be an object."""


class Window:
    """The part of a text in memory. It begins at the row being read and grows until that row fits."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._scan = json.JSONDecoder().raw_decode
        self._text = stream.read(_CHUNK)
        self._at = 0
        self._ended = not self._text
        self.marked = self._text.startswith(BOM)
        if self.marked:
            self._at = 1
        self.line = 1

    def _grow(self) -> None:
        """Drop what was read and double the window, so that the total cost stays linear in the length of the text."""
        more = self._stream.read(max(_CHUNK, len(self._text) - self._at))
        self._ended = not more
        self._text = self._text[self._at :] + more
        self._at = 0

    def next_character(self) -> str:
        """Return the next non-blank character without consuming it; an empty string at the end."""
        while True:
            rest = self._text[self._at : self._at + 64]
            kept = rest.lstrip(_BLANKS)
            self._pass(self._at + len(rest) - len(kept))
            if kept:
                return kept[0]
            if self._at == len(self._text):
                if self._ended:
                    return ""
                self._grow()

    def skip(self) -> None:
        """Consume one character, which must not be a line end."""
        self._at += 1

    def take_value(self) -> str:
        """Consume the JSON value that begins here and return its text.

        Raises:
            RowError: it is not JSON; nothing is consumed.
        """
        while True:
            try:
                _, end = self._scan(self._text, self._at)
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated string") or error.pos > len(self._text) - _NEAR_END
                if self._ended or not cut:
                    raise invalid(error.msg, error.pos - self._at, len(self._text) - self._at) from None
            except RecursionError:
                raise RowError("the row is nested too deeply", "flatten it", code="MM011") from None
            except ValueError as error:
                raise RowError(
                    f"a number that Python refuses to read: {error}", "write it as a string", code="MM007"
                ) from None
            else:
                if end < len(self._text) or self._ended:  # at the very end a number may be cut in two
                    taken = self._text[self._at : end]
                    self._pass(end)
                    return taken
            if len(self._text) - self._at > LONGEST_ROW:
                raise too_long()
            self._grow()

    def _pass(self, end: int) -> None:
        self.line += self._text.count("\n", self._at, end)
        self._at = end


def read(source: DatasetFile, notes: Notes, thorough: bool = False) -> Iterator[Row]:
    """Yield a ``Sample`` for each object of the array, or a ``RowError`` for any other element.

    Text that is not JSON ends the rows with one last ``RowError``: the rows after it cannot be found.

    Raises:
        DatasetError: the file does not hold an array, or one without objects.
    """
    file = source.name
    parse = loads_noting if thorough else loads_with_remarks
    with source.opened() as stream, as_text(stream) as text:
        window = Window(text)
        if window.marked:
            notes.add([Remark("bom", None, "begins with a byte order mark", "MM004")], file, 1)
        first = window.next_character()
        if first != "[":
            raise not_an_array(first, source.head)
        window.skip()
        for sample in array_rows(window, file, parse):
            if isinstance(sample, Sample):
                notes.add(sample.remarks, file, sample.line)
            yield sample


def array_rows(window: Window, file: str, parse: Parse, *, last: bool = True) -> Iterator[Row]:
    """Yield the array's elements; its ``[`` is consumed. Yield one last error if the rest is not valid JSON.

    ``last`` is True if nothing may follow the array.

    Raises:
        DatasetError: the array holds elements, and none of the first ones is an object.
    """
    elements = _elements(window, file, parse, last)
    others: list[RowError] = []
    for row, is_object in elements:
        if is_object or not isinstance(row, RowError):
            yield from others
            yield row
            yield from (row for row, _ in elements)
            return
        others.append(row)
        if len(others) == _MOST_OTHERS:
            break
    if others:
        hint = 'write each row as an object, such as {"question": "What is this?", "image": "cup.jpg"}'
        raise DatasetError(f"the array holds no rows: {others[0].what}", hint, others[0].where, "MM007")


def _elements(window: Window, file: str, parse: Parse, last: bool) -> Iterator[tuple[Row, bool]]:
    """Yield the elements of an array, and whether each is an object or a fault of the text."""
    row = 0
    follows = window.next_character()
    if follows == "]":
        window.skip()
    while follows != "]":
        line = window.line
        try:
            raw = window.take_value()
        except RowError as error:
            yield RowError(error.what, f"{error.hint}; {_REST}", code=error.code).located(file=file, line=line), True
            return
        yield sample_of(raw, parse, file, line, row), raw.startswith("{")
        row += 1
        follows = window.next_character()
        if follows not in {",", "]"}:
            yield _unclosed(follows).located(file=file, line=window.line), True
            return
        window.skip()
        if follows == ",":
            window.next_character()
    if last and window.next_character():
        fault = RowError("there is text after the end of the array", "remove it", code="MM002")
        yield fault.located(file=file, line=window.line), True


def _unclosed(follows: str) -> RowError:
    if not follows:
        return RowError("the array is not closed", "write the file again: it looks cut off", code="MM002")
    return RowError(f"expected ',' or ']' after a row, found {shown(follows)}", _REST, code="MM002")


def sample_of(raw: str, parse: Parse, file: str, line: int, row: int) -> Row:
    """Return the row that the text of one JSON value holds."""
    if is_broken(raw):
        return broken(raw).located(file=file, line=line)
    try:
        value, remarks = parse(raw)
    except RowError as error:
        return error.located(file=file, line=line)
    if not isinstance(value, dict):
        what = f"a row must be an object, and this one is {type_name(value)}"
        return RowError(what, "give an array of objects", code="MM007").located(file=file, line=line)
    return Sample(value, id_of(value, row), file, line, row, True, None, remarks)


def check_array(head: bytes) -> None:
    """Refuse a file whose first bytes show that it does not hold an array.

    Raises:
        DatasetError: the file does not hold an array.
    """
    first = head.decode("utf-8", "replace").removeprefix(BOM).lstrip(_BLANKS)[:1]
    if first and first != "[":
        raise not_an_array(first, head)


def not_an_array(first: str, head: bytes) -> DatasetError:
    """Return the error of a file that begins with ``first``; for an object it names the keys that hold lists."""
    if first != "{":
        return DatasetError("the file is not a JSON array of objects", "write [ {…}, {…} ], or one object a line")
    keys = [member.key for member in head_members(head) if member.begins.startswith("[")]
    if not keys:
        hint = "write an array of objects, or one object a line with no comma behind it"
        return DatasetError("the file is one JSON object, not rows", hint)
    named = " or ".join(shown(key) for key in keys)
    return DatasetError("the file is one JSON object, not rows", f"save the list under its key {named} as the file")


class Member(NamedTuple):
    """A member of the object at the head of a file: its key, the first two characters and, if read whole, its value."""

    key: str
    begins: str
    value: object = None


def head_members(head: bytes) -> list[Member]:
    """Return the members of the object at the beginning of a file, as far as ``head`` holds them."""
    text = head.decode("utf-8", "replace").removeprefix(BOM)
    scan = json.JSONDecoder().raw_decode
    found: list[Member] = []
    at = len(text) - len(text.lstrip(_BLANKS)) + 1
    try:
        while True:
            at = _after(text, at, _BLANKS + ",")
            key, at = scan(text, at)
            at = _after(text, at, _BLANKS + ":")
            begins = text[at : at + 1] + text[at + 1 : at + 80].lstrip(_BLANKS)[:1]
            found.append(Member(str(key), begins))
            value, at = scan(text, at)
            found[-1] = Member(str(key), begins, value)
    except (ValueError, RecursionError):  # the end of the object, or of what is there of it
        return found


def _after(text: str, at: int, blanks: str) -> int:
    while at < len(text) and text[at] in blanks:
        at += 1
    return at
