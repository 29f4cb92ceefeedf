"""``PartDict``: a content part as the dict that a prompt shows, with the part it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_

from mmprompt.errors import PromptError
from mmprompt.messages import PARTS, MediaRef, Part, TextPart, part_of

_new = tuple.__new__  # half the time of the class, and this runs for every part


class PartDict(dict[str, object]):
    """A content part dict that keeps the part it was written from, so that nothing has to read it back.

    It equals a plain dict with the same content. Edit it like any dict: the part of an edited one is read from it, as
    is that of one made without ``part``.
    """

    __slots__ = ("_part", "_written")

    def __init__(self, written: Mapping[str, object], part: TextPart | MediaRef | None = None) -> None:
        super().__init__(written)
        self._part = part
        self._written = _contents(self)

    @property
    def part(self) -> TextPart | MediaRef:
        """The part that the dict stands for.

        Raises:
            PromptError: the dict has no known type, or no source.
        """
        return self._kept() or part_of(self)

    def _kept(self) -> TextPart | MediaRef | None:
        """Return the part, if the dict and each dict in it hold the very objects they were made with; else None."""
        now = _contents(self)
        return self._part if len(now) == len(self._written) and all(map(is_, now, self._written)) else None

    def copied(self, contents: Mapping[str, object]) -> PartDict:
        """Return this dict with ``contents``, which are a copy of its own."""
        part = self._kept()
        if isinstance(part, MediaRef) and (part.options or not isinstance(part.source, str)):
            part = None  # it would share what was copied
        return PartDict(contents, None if part is None or part.extra else part)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with the part, unless the dict was edited."""
        return (PartDict, (dict(self), self._kept()))


def text_dict(text: str) -> PartDict:
    """Return the content part dict of a text."""
    return PartDict({"type": "text", "text": text}, _new(TextPart, (text, ())))


def part_in(item: object) -> Part | None:
    """Return the part that an element of a prompt is or stands for; None if it is neither a part nor a part dict.

    Raises:
        PromptError: a dict of no known type, or without a source.
    """
    if type(item) is PartDict:
        return item.part
    if isinstance(item, PARTS):
        return item
    return part_of(item) if isinstance(item, Mapping) else None


def prompt_parts(prompt: object, what: str = "a prompt") -> list[Part]:
    """Return what an item of a prompt says, text or content parts, as parts; ``what`` names it in errors.

    Raises:
        PromptError: it is neither, or a part has no known type or no source.
    """
    if isinstance(prompt, str):
        return [_new(TextPart, (prompt, ()))]
    if not isinstance(prompt, (list, tuple)) or isinstance(prompt, PARTS):
        raise PromptError(f"{what} is {type(prompt).__name__}", "give text, or a list of content parts")
    parts: list[Part] = []
    for item in prompt:
        part = item.part if type(item) is PartDict else part_in(item)
        if part is None:
            raise PromptError(f"{what} holds {type(item).__name__}", "give a list of content parts")
        parts.append(part)
    return parts


def _contents(item: PartDict) -> list[object]:
    """Return the keys and values of a part dict, and those of the dicts in it."""
    found = [*item, *item.values()]
    for value in item.values():
        if type(value) is dict:
            found += value
            found += value.values()
    return found
