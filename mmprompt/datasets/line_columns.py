"""The columns of a row that was taken as the line in which it stands: they are read where someone looks at them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, Union

import orjson

if TYPE_CHECKING:
    from mmprompt.targets.part_writer import Payload

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


class LineColumns(Mapping[str, object]):
    """The columns of a row of JSON that matched an expression, with what was made of its line.

    ``made`` is JSON as bytes, with a hole for each of the ``media``, and ``plan`` is what made it. All are set by what
    takes the line: an ``__init__`` would take twice as long.
    """

    __slots__ = ("id", "made", "match", "media", "plan", "shape")

    id: str
    shape: LineShape
    match: re.Match[bytes]
    made: bytes
    media: list[Payload]
    plan: object

    def __getitem__(self, name: str) -> object:
        if name in self.shape.texts:
            return text_of(self.match[self.shape.texts[name]])
        if name not in self.shape.names:
            raise KeyError(name)
        return orjson.loads(self.match.string)[name]

    def __contains__(self, name: object) -> bool:
        return name in self.shape.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.shape.names)

    def __len__(self) -> int:
        return len(self.shape.names)


AtOnce = Callable[[bytes], Union[LineColumns, None]]
"""Takes a line of JSON lines; returns its columns, with what was made of it, or None if the line has to be read."""
