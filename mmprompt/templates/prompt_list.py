"""``PromptList``: the prompt that a dialogue template makes, before the meta template.

It is a list of strings and role dicts, equal to the plain lists that the documentation prints. Each item that a
template made knows its section (begin, round, end, or one of the examples); any other item belongs to a round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, SupportsIndex, TypedDict, TypeVar, Union, overload

from mmprompt.errors import PromptError, shown
from mmprompt.messages import PARTS, Pieces, TextPart, stands_in
from mmprompt.templates.part_skeleton import PartDict
from mmprompt.templates.slots import compile_text

_T = TypeVar("_T")


class RoleDict(TypedDict, total=False):
    """A role dict, as templates and prompts have them."""

    role: str
    fallback_role: str
    prompt: str | Sequence[object] | None
    prompt_mm: Mapping[str, object]
    begin: str | int | Sequence[str | int]
    end: str | int | Sequence[str | int]
    generate: bool
    api_role: str
    name: str
    tool_calls: Sequence[object]
    tool_call_id: str


PromptItem = Union[str, RoleDict]
"""An item of a prompt"""


class Section:
    """One stretch of a prompt. Sections compare by identity: two examples side by side are two sections."""

    __slots__ = ("kind",)

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __reduce__(self) -> str | tuple[type[Section], tuple[str]]:
        """Pickle by kind; ``BY_HAND`` stays the one object that it is."""
        return "BY_HAND" if self is BY_HAND else (Section, (self.kind,))

    def __repr__(self) -> str:
        return f"Section({self.kind!r})"


class RoleItem(dict[str, Any]):
    """A role dict that knows its section. ``in_section`` makes it."""

    __slots__ = ("section",)
    section: Section

    def __reduce__(self) -> tuple[object, ...]:
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

    def __reduce__(self) -> tuple[type[TextItem], tuple[str, Section]]:
        return (TextItem, (str(self), self.section))


def text_item(text: str, section: Section) -> TextItem:
    """Return a loose text as an item of a section; also what stands for one."""
    given: object = text
    if stands_in(given) or type(given) is Pieces:
        made = Pieces((given,))
        made.section = section
        return made  # type: ignore[return-value]  # it stands for a text
    return TextItem(text, section)


BY_HAND = Section("round")
"""The section of items that no template made"""


def section_of(item: object) -> Section:
    """Return the section of an item; ``BY_HAND``, a round, if no template made it."""
    return getattr(item, "section", BY_HAND)


def in_section(item: str | Mapping[str, Any], section: Section) -> RoleItem | TextItem:
    """Return ``item`` as an item of ``section``."""
    if isinstance(item, str):
        return text_item(item, section)
    copy = RoleItem(item)
    copy.section = section
    return copy


def text_of(item: object) -> str:
    """Return the text of an item: the string itself, or the prompt of a role dict, its text parts joined.

    Raises:
        PromptError: the item is neither a string nor a dict, or its prompt is neither text nor content parts.
    """
    if isinstance(item, str):
        return item
    if not isinstance(item, Mapping):
        raise PromptError(f"a prompt holds {type(item).__name__}", "give strings and role dicts")
    prompt = item.get("prompt")
    if prompt is None or isinstance(prompt, str):
        return prompt or ""
    if not isinstance(prompt, Iterable):
        what = f"the prompt {shown(prompt)} of role {item.get('role')} is not text"
        raise PromptError(what, "give text, or a list of content parts")
    return "".join([_text_of_part(part) for part in prompt])


def _text_of_part(part: object) -> str:
    if isinstance(part, Mapping):
        return str(part.get("text", "")) if part.get("type") == "text" else ""
    if not isinstance(part, PARTS):
        raise PromptError(f"a prompt holds {type(part).__name__}", "give a list of content parts")
    return part.text if isinstance(part, TextPart) else ""


class PromptList(list[Any]):
    """A prompt: a list of strings and role dicts (``role``, ``prompt`` and the template's further keys).

    ``prompt`` is text, or a list of content part dicts. ``+`` and ``+=`` take strings and lists on either side,
    slices are PromptLists, and ``str()`` joins the texts without a separator.

    Source: OpenCompass, Prompt Template and Meta Template, whose printed lists it equals.
    """

    __slots__ = ()

    def format(self, mapping: Mapping[str, object] | None = None, /, **columns: object) -> PromptList:
        """Return a copy with the slots of its texts filled, in one pass, from a mapping or from keywords."""
        values = {**(mapping or {}), **columns}
        return self.with_texts(lambda text: compile_text(text).fill(values))

    def replace(self, src: str, dst: str | list[PromptItem]) -> PromptList:
        """Return a copy with ``src`` replaced by a text; in the strings of the list also by the items of a list.

        Raises:
            PromptError: ``dst`` is a list and ``src`` stands inside a role's prompt.
        """
        if not isinstance(src, str) or not isinstance(dst, (str, list)) or (isinstance(dst, list) and not src):
            what = f"cannot replace {shown(src)} by {type(dst).__name__}"
            raise PromptError(what, "give a text to find, and a text or a list in its place")
        if isinstance(dst, str):
            return self.with_texts(lambda text: text.replace(src, dst))
        out = PromptList()
        for item in self:
            if isinstance(item, str):
                out.extend(_spliced(item, src, dst))
            elif src in text_of(item):
                raise PromptError(
                    f"{shown(src)} stands inside the prompt of role {item.get('role')}",
                    "put it into a separate string: a list cannot replace part of a role's prompt",
                )
            else:
                out.append(item)
        return out

    def with_texts(self, change: Callable[[str], str]) -> PromptList:
        """Return a copy in which ``change`` replaces each text."""
        out = PromptList()
        for item in self:
            if isinstance(item, str):
                out.append(in_section(change(item), section_of(item)))
                continue
            text_of(item)  # refuses what is neither a string nor a role dict
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
        """Return this prompt followed by ``other``: a string is one item; None and ``""`` add none."""
        return PromptList([*self, *_items(other)])

    def __radd__(self, other: Any) -> PromptList:
        return PromptList([*_items(other), *self])

    def __iadd__(self, other: Any) -> PromptList:
        """Append ``other``: a string is one item; None and ``""`` add none."""
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


def copy_of(items: Iterable[PromptItem | RoleItem]) -> PromptList:
    """Return copies of the items of a prompt, which share nothing with them."""
    return PromptList([in_section(copied(i), section_of(i)) if isinstance(i, Mapping) else i for i in items])


def _items(other: object) -> list[PromptItem]:
    if other is None or (isinstance(other, (str, list, tuple)) and not other):
        return []
    if isinstance(other, str):
        return [other]
    if isinstance(other, (list, tuple)):
        return list(other)
    raise PromptError(f"cannot add {type(other).__name__} to a prompt", "add a string or a list of items")


def _spliced(text: str, src: str, dst: Sequence[PromptItem]) -> list[PromptItem | RoleItem]:
    section = section_of(text)
    out: list[PromptItem | RoleItem] = []
    for position, piece in enumerate(text.split(src)):
        if position:
            out.extend(dst)
        if piece:
            out.append(in_section(piece, section))
    return out


def copied(value: _T) -> _T:
    """Return a deep copy of ``value``: mappings, lists and tuples are copied, other objects are shared."""
    given: Any = value
    if isinstance(given, Mapping):
        contents = {key: copied(item) for key, item in given.items()}
        given = given.copied(contents) if type(given) is PartDict else contents
    elif type(given) in (list, tuple):
        given = type(given)([copied(item) for item in given])
    return given  # type: ignore[no-any-return]  # of the type of the value
