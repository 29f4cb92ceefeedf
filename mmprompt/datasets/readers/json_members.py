"""One JSON object as a dataset: a list of rows under one of its keys, or an object of objects, whose keys are ids."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from mmprompt.datasets.dataset_file import DatasetFile
from mmprompt.datasets.json_rows import Member, Parse, Window, array_rows, sample_of
from mmprompt.datasets.notes import Notes
from mmprompt.datasets.sample import Row, Sample
from mmprompt.datasets.utf8_text import as_text
from mmprompt.errors import DatasetError, RowError, nearest, shown
from mmprompt.targets.exact_json import loads_noting, loads_with_remarks

_BLANKS = " \t\r\n"


def read(source: DatasetFile, notes: Notes, thorough: bool = False, key: str | None = None) -> Iterator[Row]:
    """Yield a ``Sample`` for each element of the list under ``key``; without a key for each member of the object.

    Under the key there may also be an object of objects. The keys of an object of objects are the ids.

    Raises:
        DatasetError: the file holds no object, or the object has no such key.
    """
    parse = loads_noting if thorough else loads_with_remarks
    with opened_object(source) as window:
        yield from _noted(_rows(window, source, parse, key), notes)


@contextmanager
def opened_object(source: DatasetFile) -> Iterator[Window]:
    """Open the file for ``members``.

    Raises:
        DatasetError: it does not hold an object.
    """
    with source.opened() as stream, as_text(stream) as text:
        window = Window(text)
        if window.next_character() != "{":
            raise DatasetError(f"{shown(source.name)} does not hold one JSON object", "name its format with --format")
        yield window


def _noted(rows: Iterator[Row], notes: Notes) -> Iterator[Row]:
    for row in rows:
        if isinstance(row, Sample):
            notes.add(row.remarks, row.file, row.line)
        yield row


def _rows(window: Window, source: DatasetFile, parse: Parse, key: str | None) -> Iterator[Row]:
    file = source.name
    seen = []
    try:
        if key is None:
            yield from _object_rows(window, file, parse)
            return
        for name in members(window):
            if name == key:
                yield from rows_here(window, file, parse)
                return
            seen.append(name)
            skip_value(window)
    except RowError as error:
        yield error.located(file=file, line=window.line)
        return
    raise DatasetError(f"the file has no key {shown(key)}", nearest(key, seen)).located(file=file)


def rows_here(window: Window, file: str, parse: Parse) -> Iterator[Row]:
    """Yield the rows of the list, or of the object of objects, that begins here."""
    first = window.next_character()
    if first == "[":
        window.skip()
        yield from array_rows(window, file, parse, last=False)
    elif first == "{":
        yield from _object_rows(window, file, parse)
    else:
        raise DatasetError("the key holds no rows", "name the key of a list: --key").located(file=file)


def _object_rows(window: Window, file: str, parse: Parse) -> Iterator[Row]:
    for row, name in enumerate(members(window)):
        line = window.line
        sample = sample_of(window.take_value(), parse, file, line, row)
        yield sample._replace(id=name) if isinstance(sample, Sample) else sample.located(sample=name)


def members(window: Window) -> Iterator[str]:
    """Yield the keys of the object that begins here; the caller consumes each value before it asks for the next key.

    Raises:
        RowError: the text is not JSON.
    """
    window.skip()
    if window.next_character() == "}":
        window.skip()
        return
    while True:
        name = json.loads(window.take_value())
        if not isinstance(name, str) or window.next_character() != ":":
            raise RowError("a key and ':' are missing in the object", "write the file again", code="MM002")
        window.skip()
        window.next_character()
        yield name
        follows = window.next_character()
        if follows not in {",", "}"}:
            what = "the object is not closed" if not follows else f"expected ',' or '}}', found {shown(follows)}"
            raise RowError(what, "write the file again: it looks cut off", code="MM002")
        window.skip()
        if follows == "}":
            return
        window.next_character()


def skip_value(window: Window) -> None:
    """Consume the value that begins here, a list element by element."""
    if window.next_character() != "[":
        window.take_value()
        return
    window.skip()
    follows = window.next_character()
    while follows != "]":
        window.take_value()
        follows = window.next_character()
        if follows == ",":
            window.skip()
            window.next_character()
        elif follows != "]":
            raise RowError("a list is not closed", "write the file again: it looks cut off", code="MM002")
    window.skip()


def key_of_rows(source: DatasetFile, found: list[Member]) -> str | None:
    """Return the key of the one list of objects that a file holds; None if the file is an object of objects.

    Raises:
        DatasetError: it holds several such lists, or none.
    """
    if found and all(member.begins[:1] == "{" for member in found):
        return None
    lists = [member.key for member in found if member.begins == "[{"]
    if len(lists) == 1:
        return lists[0]
    if lists:
        named = ", ".join(map(shown, lists))
        raise DatasetError(f"the file holds several lists: {named}", f"name one: --key {lists[0]}").located(
            file=source.name
        )
    hint = "write an array of objects, or one object a line with no comma behind it"
    raise DatasetError("the file is one JSON object, not rows", hint).located(file=source.name)
