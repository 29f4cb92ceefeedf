"""A request as one prompt, for tools that have no place for turns."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from mmprompt.errors import TargetError
from mmprompt.messages import MediaPart, Part, TextPart
from mmprompt.render.request import Request
from mmprompt.targets.openai import from_openai


class SinglePrompt(NamedTuple):
    """The text of a system message, empty if there is none, and the parts of the one user message."""

    system: str
    parts: tuple[Part, ...]


def single_prompt(request: Request, who: str, modalities: Collection[str], *, system: bool = False) -> SinglePrompt:
    """Return a request as one prompt for the tool ``who``, which takes media of ``modalities`` as bytes.

    Raises:
        TargetError: the request has other messages, or other media; with the place.
    """
    messages = from_openai(request["messages"])
    *first, last = messages
    kept = system and len(first) == 1 and first[0].role == "system"
    if last.role != "user" or (first and not kept):
        told = ", ".join(message.role for message in messages)
        raise TargetError(f"{who} has one user message for a row, and the request has: {told}", "use another runner")
    for place, part in enumerate(last.parts, 1):
        lost = _loss(part, modalities)
        if lost:
            raise TargetError(f"{who} {lost}", "leave the row out").located(message=len(messages), part=place)
    return SinglePrompt(first[0].text if first else "", last.parts)


def _loss(part: Part, modalities: Collection[str]) -> str:
    """Return why a part cannot be carried; empty if it can."""
    if part.extra or getattr(part, "options", ()):
        return f"has no place for {', '.join(key for key, _ in (*part.extra, *getattr(part, 'options', ())))} of a part"
    if isinstance(part, TextPart):
        return ""
    if part.modality not in modalities:
        return f"cannot carry {part.modality}"
    return "" if isinstance(part, MediaPart) else f"would fetch the {part.modality} that goes by its URL"
