"""Prompts before the meta template as plain data: their media as content part dicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Union

from mmprompt.messages import MediaPart, MediaRef, Message, TextPart, part_dict
from mmprompt.meta_template.meta_template import role_dict
from mmprompt.templates.part_skeleton import part_in
from mmprompt.templates.prompt_list import PromptItem, PromptList, RoleDict

if TYPE_CHECKING:
    from mmprompt.icl.assembly import Prompt
    from mmprompt.media.reader import MediaReader

PlainPrompt = Union[str, list[PromptItem], dict[str, "PlainPrompt"]]
"""A prompt as JSON has it; under PPL an object from label to prompt."""


def default_prompt(messages: Iterable[Message]) -> PromptList:
    """Return the messages of a row without a template as its prompt."""
    return PromptList(map(role_dict, messages))


def shown_prompt(messages: Iterable[Message]) -> PromptList:
    """Return the same as plain data."""
    return PromptList(map(shown_item, default_prompt(messages)))


def shown_item(item: RoleDict, reader: MediaReader | None = None) -> RoleDict:
    """Return an item of a prompt as plain data: its parts as content part dicts, a text that stands alone as text.

    A ``reader`` turns objects in memory that hold media (rows given in Python) into data URIs.
    """
    prompt = item.get("prompt")
    if not isinstance(prompt, list):
        return {**item}
    if len(prompt) == 1 and isinstance(text := prompt[0], TextPart) and not text.extra:
        return {**item, "prompt": text.text}
    return {**item, "prompt": [_shown_part(part, reader) for part in prompt]}


def _shown_part(item: object, reader: MediaReader | None) -> object:
    part = part_in(item)
    if reader is not None and isinstance(part, MediaRef) and not isinstance(part.source, str):
        item = reader.read(part)
    if isinstance(item, MediaPart):
        from mmprompt.targets.openai import to_openai  # noqa: PLC0415  # only for media that were read

        return to_openai([Message("user", [item])], content="parts")[0]["content"][0]
    return part_dict(item) if isinstance(item, (TextPart, MediaRef)) else item


def plain_prompt(prompt: Prompt | Mapping[object, Prompt], reader: MediaReader) -> PlainPrompt:
    """Return a prompt as plain JSON data; the reader as in ``shown_item``."""
    if isinstance(prompt, str):
        return str(prompt)
    if not isinstance(prompt, list):
        return {str(label): plain_prompt(p, reader) for label, p in prompt.items()}
    return [item if isinstance(item, str) else shown_item(item, reader) for item in prompt]
