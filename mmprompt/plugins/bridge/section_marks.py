"""Prompts as OpenCompass and its fork AISBench keep them, a ``PromptList`` of theirs with section markers, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mmprompt.errors import PromptError
from mmprompt.messages import Part, TextPart
from mmprompt.plugins.bridge.message_writer import MessageWriter
from mmprompt.templates.part_dict import prompt_parts
from mmprompt.templates.prompt_list import PromptList, Section, in_section, section_of


class Content(list[dict[str, Any]]):
    """Content part dicts as the server gets them, with the parts that they were written from."""

    def __init__(self, written: Iterable[dict[str, Any]], parts: tuple[Part, ...]) -> None:
        super().__init__(written)
        self.parts = parts

    def __reduce__(self) -> tuple[object, ...]:
        """Travel as the plain list: who sends it needs no more."""
        return (list, (list(self),))


ListClass = Callable[[Iterable[Any]], Any]
"""A runner's own ``PromptList``: its parsers ask for that very class."""


def to_marked(prompt: Any, outgoing: MessageWriter, list_class: ListClass) -> Any:
    """Return a prompt of the core as a runner's ``list_class``; text stays text.

    Media are read, and are content parts as the server gets them.

    Raises:
        MMPromptError: a medium that cannot be read, or that the target does not take.
    """
    if isinstance(prompt, str):
        return str(prompt)
    out: list[Any] = []
    last: Section | None = None
    for item in prompt:
        section = section_of(item)
        if section is not last:
            out += [*_marker(last, "end"), *_marker(section, "begin")]
            last = section
        out.append(str(item) if isinstance(item, str) else _role(item, outgoing))
    return list_class([*out, *_marker(last, "end")])


def _marker(section: Section | None, pos: str) -> list[dict[str, str]]:
    return [] if section is None else [{"section": section.kind, "pos": pos}]


def _role(item: Mapping[str, Any], outgoing: MessageWriter) -> dict[str, Any]:
    """Return a role dict, whose ``prompt_mm`` holds what is more than one text."""
    said = item["prompt"] if "prompt" in item else item.get("content")
    kept = {key: value for key, value in item.items() if key not in ("prompt", "content")}
    if said is None:
        return kept
    parts = prompt_parts(said)
    if all(type(part) is TextPart and not part.extra for part in parts) and len(parts) < 2:
        return {**kept, "prompt": "".join([part.text for part in parts if type(part) is TextPart])}
    read = tuple(outgoing.read(parts))
    content = outgoing.content(read)
    return {**kept, "prompt_mm": Content(content if isinstance(content, list) else [], read)}


def from_marked(prompt: Any) -> Any:
    """Return a prompt that a runner or one of its templates made as one of the core; text stays text.

    Raises:
        PromptError: markers that do not pair.
    """
    if isinstance(prompt, str):
        return prompt
    out = PromptList()
    open_sections = [Section("round")]
    for item in prompt:
        if isinstance(item, Mapping) and "section" in item:
            if item.get("pos") == "begin":
                open_sections.append(Section(item["section"]))
            elif len(open_sections) > 1:
                open_sections.pop()
            elif item["section"] == "end":
                open_sections.append(Section("end"))  # the stock template opens it with pos="end"
            else:
                raise PromptError(f"section '{item['section']}' ends and never began", "give its begin marker")
        elif isinstance(item, str):
            if item:
                out.append(in_section(item, open_sections[-1]))
        else:
            out.append(in_section(_core_role(item), getattr(item, "section", open_sections[-1])))
    return out


def _core_role(item: Mapping[str, Any]) -> dict[str, Any]:
    mixed = item.get("prompt_mm")
    if mixed is None:
        return dict(item)
    kept = {key: value for key, value in item.items() if key != "prompt_mm"}
    return {**kept, "prompt": list(mixed.parts if isinstance(mixed, Content) else mixed)}
