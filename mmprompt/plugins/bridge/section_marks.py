"""Prompts as OpenCompass and AISBench keep them (their own ``PromptList``, with section markers), and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypedDict, Union

from mmprompt.errors import PromptError
from mmprompt.icl.assembly import Prompt
from mmprompt.messages import MediaRef, Message, Part, TextPart
from mmprompt.plugins.bridge.runner_builder import RunnerBuilder
from mmprompt.targets.json_values import JSONValue
from mmprompt.templates.part_skeleton import prompt_parts
from mmprompt.templates.prompt_list import PromptList, Section, in_section, section_of


class WrittenParts(list[JSONValue]):
    """Content part dicts as the server gets them, with the parts that they were written from."""

    def __init__(self, written: Iterable[JSONValue], parts: tuple[Part, ...]) -> None:
        super().__init__(written)
        self.parts = parts

    def __reduce__(self) -> tuple[type[list[JSONValue]], tuple[list[JSONValue]]]:
        """Pickle as a plain list; the process that sends the request needs only that."""
        return (list, (list(self),))


class RunnerDict(TypedDict, total=False):
    """A dict in a runner's prompt: a role dict, or a marker (``section``, ``pos``) where a section begins or ends.

    Other keys of a role dict travel along.
    """

    role: str
    prompt: str | Sequence[object] | None
    content: str | Sequence[object] | None
    prompt_mm: Sequence[object]
    section: str
    pos: str


RunnerItem = Union[str, RunnerDict]

RunnerPrompt = Union[str, Sequence[RunnerItem]]
"""A prompt of a runner: text, or its own ``PromptList``."""

ListClass = Callable[[Iterable[RunnerItem]], list[RunnerItem]]
"""A runner's own ``PromptList``. Its parsers test for that very class."""


def to_marked(prompt: Prompt, builder: RunnerBuilder, list_class: ListClass) -> RunnerPrompt:
    """Return a prompt as a runner's ``list_class``; text stays text. Media are read and written as content parts."""
    if isinstance(prompt, str):
        return str(prompt)
    out: list[RunnerItem] = []
    last: Section | None = None
    for item in prompt:
        section = section_of(item)
        if section is not last:
            out += [*_marker(last, "end"), *_marker(section, "begin")]
            last = section
        out.append(str(item) if isinstance(item, str) else _runner_role(item, builder))
    return list_class([*out, *_marker(last, "end")])


def _marker(section: Section | None, pos: str) -> list[RunnerDict]:
    return [] if section is None else [{"section": section.kind, "pos": pos}]


def _runner_role(item: RunnerDict, builder: RunnerBuilder) -> RunnerDict:
    """Return a role dict; content that is more than one plain text goes into ``prompt_mm``."""
    kept: RunnerDict = {**item}
    content = kept.pop("content", None)
    said = kept.pop("prompt", content)
    if said is None:
        return kept
    parts = prompt_parts(said)
    if all(type(part) is TextPart and not part.extra for part in parts) and len(parts) < 2:
        kept["prompt"] = "".join([part.text for part in parts if type(part) is TextPart])
        return kept
    read = tuple([builder.media.read(part) if type(part) is MediaRef else part for part in parts])
    written = builder.messages([Message("user", read)])[0]["content"]
    kept["prompt_mm"] = WrittenParts(written if isinstance(written, list) else [], read)
    return kept


def from_marked(prompt: RunnerPrompt) -> str | PromptList:
    """Return a prompt that a runner or one of its templates made as a ``PromptList`` of ours; text stays text.

    Raises:
        PromptError: the markers do not pair.
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


def _core_role(item: RunnerDict) -> RunnerDict:
    kept: RunnerDict = {**item}
    mixed = kept.pop("prompt_mm", None)
    if mixed is not None:
        kept["prompt"] = list(mixed.parts if isinstance(mixed, WrittenParts) else mixed)
    return kept
