"""``PromptList``: what a dialogue template gives, before the meta template.

A list of strings and role dicts, equal to the plain lists that the documentation prints. Each item that a template
made knows the section it belongs to (begin, round, end, or one of the examples); a plain item is part of a round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, SupportsIndex, overload

from mmprompt.errors import PromptError, shown
from mmprompt.messages import PARTS, TextPart
from mmprompt.templates.slots import SlotText, compile_text


class Section:
    """One stretch of a prompt; two examples side by side are two sections, though they look alike."""

    __slots__ = ("kind",)

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __reduce__(self) -> str | tuple[object, ...]:
        """Pickle by kind; the section of items put in by hand stays itself."""
        return "BY_HAND" if self is BY_HAND else (Section, (self.kind,))

    def __repr__(self) -> str:
        """Show the kind: begin, round, end or ice."""
        return f"Section({self.kind!r})"


class RoleItem(dict[str, Any]):
    """A role dict that knows its section; made by ``in_section``."""

    __slots__ = ("section",)
    section: Section

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle and copy with the section."""
        return (in_section, (dict(self), section_of(self)))


class TextItem(str):
    """A loose string that knows its section."""

    __slots__ = ("section",)
    section: Section

    def __new__(cls, text: str, section: Section) -> TextItem:
        """Make a string that belongs to ``section``."""
        self = super().__new__(cls, text)
        self.section = section
        return self

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle and copy with the section."""
        return (TextItem, (str(self), self.section))


BY_HAND = Section("round")


def section_of(item: object) -> Section:
    """Return the section of an item; one put in by hand belongs to a round."""
    return getattr(item, "section", BY_HAND)


def in_section(item: str | Mapping[str, Any], section: Section) -> RoleItem | TextItem:
    """Return ``item`` as an item of ``section``."""
    if isinstance(item, str):
        return TextItem(item, section)
    copy = RoleItem(item)
    copy.section = section
    return copy


class Stencil:
    """Items of a prompt that are handed out again and again, each time as copies that share nothing.

    ``fills`` are texts with slots by the place of the item whose prompt they are.
    """

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[Any], fills: Mapping[int, SlotText] | None = None) -> None:
        fill = {place: text.fill for place, text in (fills or {}).items()}
        self._items = [(item, _own_section(item), fill.get(place)) for place, item in enumerate(items)]

    def items(self, columns: Mapping[str, object] | None = None, masked: str | None = None) -> PromptList:
        """Return new copies of the items, filled from ``columns``; strings are themselves.

        Raises:
            KeyError: a token of ``column_token_map`` whose column the sample lacks.
        """
        out = PromptList()
        add = out.append
        for item, section, fill in self._items:
            if section is not None:
                copy = RoleItem(item)
                copy.section = section
                if fill is not None:
                    copy["prompt"] = fill(columns or {}, masked)
                add(copy)
            elif isinstance(item, Mapping):
                add(in_section(copied(item), section_of(item)))
            else:
                add(item)
        return out


def _own_section(item: Any) -> Section | None:
    """Return the section of an item that a shallow copy is enough for, None for all others."""
    if type(item) is not RoleItem or not hasattr(item, "section"):
        return None
    return item.section if all(v is None or isinstance(v, (str, int, float)) for v in item.values()) else None


def text_of(item: object) -> str:
    """Return the text of an item: a string, a role dict's prompt, or the texts of its content parts joined.

    Raises:
        PromptError: the item is neither a string nor a dict, or its prompt neither text nor content parts.
    """
    if isinstance(item, str):
        return item
    if not isinstance(item, Mapping):
        raise PromptError(f"a prompt holds {type(item).__name__}", "its items are strings and role dicts")
    prompt = item.get("prompt")
    if prompt is None or isinstance(prompt, str):
        return prompt or ""
    if not isinstance(prompt, Iterable):
        raise PromptError(f"prompt {shown(prompt)} of role {item.get('role')} is no text", "give text or content parts")
    return "".join([_text_of_part(part) for part in prompt])


def _text_of_part(part: object) -> str:
    if isinstance(part, Mapping):
        return str(part.get("text", "")) if part.get("type") == "text" else ""
    if not isinstance(part, PARTS):
        raise PromptError(f"a prompt holds {type(part).__name__}", "its list holds content parts")
    return part.text if isinstance(part, TextPart) else ""


class PromptList(list[Any]):
    """A prompt as a list of strings and role dicts (``role``, ``prompt`` and what else the template gave).

    ``prompt`` is text, or a list of content part dicts. ``+`` and ``+=`` take strings and lists on either side,
    slices are PromptLists, and ``str()`` joins the texts without a separator.

    Source: OpenCompass, Prompt Template and Meta Template, whose printed lists it equals.
    """

    __slots__ = ()

    def format(self, mapping: Mapping[str, object] | None = None, /, **columns: object) -> PromptList:
        """Return a copy whose texts have their slots filled, in one pass, from a mapping or from keywords."""
        values = {**(mapping or {}), **columns}
        return self._map_texts(lambda text: compile_text(text).fill(values))

    def replace(self, src: str, dst: str | list[Any]) -> PromptList:
        """Return a copy with ``src`` replaced by text, or (in loose strings) by the items of a list.

        Raises:
            PromptError: ``dst`` is a list and ``src`` stands inside a role's prompt.
        """
        if not isinstance(src, str) or not isinstance(dst, (str, list)) or (isinstance(dst, list) and not src):
            raise PromptError(f"cannot replace {shown(src)} by {type(dst).__name__}", "give text and text or a list")
        if isinstance(dst, str):
            return self._map_texts(lambda text: text.replace(src, dst))
        out = PromptList()
        for item in self:
            if isinstance(item, str):
                out.extend(_spliced(item, src, dst))
            elif src in text_of(item):
                raise PromptError(
                    f"{shown(src)} stands inside the prompt of role {item.get('role')}",
                    "a list can take the place of a loose string only",
                )
            else:
                out.append(item)
        return out

    def _map_texts(self, change: Callable[[str], str]) -> PromptList:
        out = PromptList()
        for item in self:
            if isinstance(item, str):
                out.append(in_section(change(item), section_of(item)))
                continue
            text_of(item)  # an item that is none is refused
            changed = copied(item)
            prompt = changed.get("prompt")
            if isinstance(prompt, str):
                changed["prompt"] = change(prompt)
            for part in prompt if isinstance(prompt, list) else ():
                if isinstance(part, dict) and isinstance(part.get("text"), str):
                    part["text"] = change(part["text"])
            out.append(in_section(changed, section_of(item)))
        return out

    def __add__(self, other: Any) -> PromptList:
        """Return this prompt followed by ``other``: a string is one item, nothing adds nothing."""
        return PromptList([*self, *_items(other)])

    def __radd__(self, other: Any) -> PromptList:
        """Return ``other``, a string or a list, followed by this prompt."""
        return PromptList([*_items(other), *self])

    def __iadd__(self, other: Any) -> PromptList:
        """Append ``other``: a string is one item, nothing adds nothing."""
        self.extend(_items(other))
        return self

    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> PromptList: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        """Return an item, or a PromptList for a slice."""
        got = super().__getitem__(index)
        return PromptList(got) if isinstance(index, slice) else got

    def copy(self) -> PromptList:
        """Return a shallow copy."""
        return PromptList(self)

    def __str__(self) -> str:
        """Return the texts of all items joined without a separator."""
        return "".join([text_of(item) for item in self])

    def __repr__(self) -> str:
        """Show the list as the documentation prints it."""
        return f"PromptList({super().__repr__()})"


def _items(other: Any) -> list[Any]:
    if other is None or (isinstance(other, (str, list, tuple)) and not other):
        return []
    if isinstance(other, str):
        return [other]
    if isinstance(other, (list, tuple)):
        return list(other)
    raise PromptError(f"cannot add {type(other).__name__} to a prompt", "add a string or a list of items")


def _spliced(text: str, src: str, dst: list[Any]) -> list[Any]:
    section = section_of(text)
    out: list[Any] = []
    for position, piece in enumerate(text.split(src)):
        if position:
            out.extend(dst)
        if piece:
            out.append(in_section(piece, section))
    return out


def copied(value: Any) -> Any:
    """Return ``value`` with its mappings and lists copied, all the way down; other objects are shared."""
    if isinstance(value, Mapping):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)([copied(item) for item in value])
    return value
