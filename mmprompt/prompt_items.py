"""Prompts before the meta template: messages as items of them, and how long they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mmprompt.errors import TaskError
from mmprompt.media.classify import as_written
from mmprompt.parts import MediaPart, MediaRef, Message, Part, part_dict

CountTokens = Callable[[str], int]


def role_item(message: Message) -> dict[str, Any]:
    """Return a message as an item of a prompt; nothing of it is lost."""
    names = {"user": "HUMAN", "assistant": "BOT", "system": "SYSTEM", "tool": "TOOL"}
    parts = [_shown_part(p) for p in message.parts]
    plain = len(parts) == 1 and set(parts[0]) == {"type", "text"}
    prompt: Any = parts[0]["text"] if plain else parts or ""
    return {"role": names.get(message.role, message.role), "prompt": prompt, **message.beside_content()}


def _shown_part(part: Part) -> dict[str, Any]:
    if not isinstance(part, MediaPart):
        return part_dict(part, as_written(part.source) if isinstance(part, MediaRef) else None)
    from mmprompt.targets.openai import to_openai  # noqa: PLC0415  # only for chat rows that carry their media

    content: list[dict[str, Any]] = to_openai([Message("user", [part])], content="parts")[0]["content"]
    return content[0]


def images_in(prompt: Any) -> int:
    """Return how many images a prompt holds."""
    if not isinstance(prompt, list):
        return 0
    said = [
        part for item in prompt if isinstance(item, Mapping) for part in item.get("prompt", item.get("content")) or ()
    ]
    return sum(isinstance(part, Mapping) and "image" in str(part.get("type")) for part in said)


def token_counter(tokenizer: Any) -> CountTokens | None:
    """Return what counts the tokens of a text, of a tokenizer or of a function that does."""
    if tokenizer is None:
        return None
    if hasattr(tokenizer, "encode"):
        return lambda text: len(tokenizer.encode(text))
    if callable(tokenizer):
        return lambda text: int(tokenizer(text))
    raise TaskError(f"a tokenizer is {type(tokenizer).__name__}", "give one with encode(text), or a function")
