"""Prompts before the meta template: messages as items of them, and how long they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mmprompt.errors import TaskError
from mmprompt.media.sources import as_written
from mmprompt.messages import MediaPart, MediaRef, Message, TextPart, part_dict, part_of

if TYPE_CHECKING:
    from mmprompt.media.reader import MediaReader

CountTokens = Callable[[str], int]


def role_item(message: Message) -> dict[str, Any]:
    """Return a message as an item of a prompt; nothing of it is lost, and what was read is not read again."""
    names = {"user": "HUMAN", "assistant": "BOT", "system": "SYSTEM", "tool": "TOOL"}
    parts = [p if isinstance(p, MediaPart) else _named(p) for p in message.parts]
    prompt: Any = parts or ""
    if len(message.parts) == 1 and isinstance(text := message.parts[0], TextPart) and not text.extra:
        prompt = text.text
    return {"role": names.get(message.role, message.role), "prompt": prompt, **message.beside_content()}


def _named(part: TextPart | MediaRef) -> dict[str, object]:
    return part_dict(part, as_written(part.source) if isinstance(part, MediaRef) else None)


def shown_item(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item of a prompt with the media in it that were read as content part dicts."""
    prompt = item.get("prompt")
    if not isinstance(prompt, list):
        return dict(item)
    return {**item, "prompt": [_embedded(part) if isinstance(part, MediaPart) else part for part in prompt]}


def _embedded(part: MediaPart) -> dict[str, Any]:
    from mmprompt.targets.openai import to_openai  # noqa: PLC0415  # only for media that were read

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


def plain_prompt(prompt: Any, reader: MediaReader) -> Any:
    """Return a prompt as plain JSON data: media objects in it (rows given in Python) become data URIs."""
    if isinstance(prompt, str):
        return str(prompt)
    if not isinstance(prompt, list):
        return {str(label): plain_prompt(p, reader) for label, p in prompt.items()}
    return [item if isinstance(item, str) else _plain_item(item, reader) for item in prompt]


def _plain_item(item: Mapping[str, Any], reader: MediaReader) -> dict[str, Any]:
    prompt = item.get("prompt")
    if not isinstance(prompt, list):
        return dict(item)
    return shown_item({**item, "prompt": [_read(part, reader) for part in prompt]})


def _read(part: Any, reader: MediaReader) -> Any:
    """Return a part of a prompt, read if an object in memory holds its medium."""
    value = part_of(part) if isinstance(part, Mapping) else part
    return reader.read(value) if isinstance(value, MediaRef) and not isinstance(value.source, str) else part
