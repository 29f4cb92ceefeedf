"""The columns of a row that was taken as the line in which it stands: they are read where someone looks at them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Union

import orjson

_BACKSLASH = ord("\\")


def text_of(text: bytes) -> str:
    """Return what stands between the quotes of a string of JSON."""
    return orjson.loads(b'"%b"' % text) if _BACKSLASH in text else text.decode()


class LineShape(NamedTuple):
    """What the lines that match an expression have in common.

    ``names`` are the columns. ``texts`` are those whose texts are groups of the match, with the numbers of the groups;
    ``id`` is one of them. The others hold no ``<`` but that of tags.
    """

    names: tuple[str, ...]
    texts: Mapping[str, int]

    def free(self, names: Iterable[str]) -> list[str]:
        """Return those of these columns whose texts may hold any ``<``."""
        return [name for name in names if name in self.texts]


AroundFile = tuple[str, Callable[[bytes], object], bytes, bytes]
"""For a row with one file: its path, a test of its signature, and what is sent before and after its base64."""


class LineColumns(Mapping[str, object]):
    """The columns of a row of JSON that matched an expression, and what is sent for it.

    ``made`` is the JSON that is sent, empty if media have to be read first. ``form`` then makes it of the groups
    of the ``match``. Where only the bytes of one file are not known, the rest stands ``around`` it. All are
    set by what takes the line: an ``__init__`` would take twice as long.
    """

    __slots__ = ("around", "form", "id", "made", "match", "shape")

    id: str
    shape: LineShape
    match: re.Match[bytes]
    made: bytes
    form: Any
    around: AroundFile | None

    def as_read(self) -> dict[str, object]:
        """Return the columns as they are read from the line."""
        columns: dict[str, object] = orjson.loads(self.match.string)
        return columns

    def __getitem__(self, name: str) -> object:
        if name in self.shape.texts:
            return text_of(self.match[self.shape.texts[name]])
        if name not in self.shape.names:
            raise KeyError(name)
        return self.as_read()[name]

    def __contains__(self, name: object) -> bool:
        return name in self.shape.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.shape.names)

    def __len__(self) -> int:
        return len(self.shape.names)


AtOnce = Callable[[bytes], Union[LineColumns, None]]
"""Takes a line of JSON lines; returns its columns and what is known of its request, None if it has to be read."""
