"""Chats whose media stand in columns: ``{"type": "image"}`` or ``<image>`` takes the next of ``images``.

The first is the form of datasets for TRL, the second, in a content that is a string, that of datasets for verl.
"""

from __future__ import annotations

from collections.abc import Mapping

from mmprompt.datasets.layouts.conversations import MEDIA, media_of
from mmprompt.datasets.placeholders import MediaQueue, holds_mark
from mmprompt.datasets.sample import Sample
from mmprompt.messages import MODALITIES, TextPart

_COLUMNS = frozenset(name for names in MEDIA.values() for name in names)
_MAPPING = (dict, Mapping)  # a tenth of the time of Mapping alone, where it is a dict
_INDEX = "index"
"""The key with which some datasets number their parts: which medium of its modality it is, from 0."""


def with_media(sample: Sample) -> Sample:
    """Return a chat with the media of its columns in the parts that name none, and in place of marks in strings.

    A chat stays as it is if its parts name their media, or if its contents are strings without a mark.

    Raises:
        RowError: there are more or fewer places than media.
    """
    columns = sample.columns
    messages = columns["messages"]
    if _COLUMNS.isdisjoint(columns) or not isinstance(messages, list):
        return sample
    media = media_of(sample)
    contents = [message.get("content") for message in messages if isinstance(message, _MAPPING)]
    lists = [content for content in contents if isinstance(content, list)]
    parts = [part for content in lists for part in content if isinstance(part, _MAPPING)]
    texts_alone = bool(parts) and all(part.get("type") == "text" for part in parts)
    marked = not lists and any(isinstance(content, str) and holds_mark(content) for content in contents)
    if not (texts_alone or marked or any(map(_is_place, parts))):
        return sample if any(media.values()) else sample._replace(sent=sample.sent | _COLUMNS)
    queue = MediaQueue(media, "<%s>" if marked else '{"type": "%s"}')
    filled = [_filled(message, queue) if isinstance(message, _MAPPING) else message for message in messages]
    queue.close()
    return sample._replace(columns={**columns, "messages": filled}, sent=sample.sent | _COLUMNS)


def _is_place(part: Mapping[str, object]) -> bool:
    kind = part.get("type")
    if kind not in MODALITIES:
        return False
    return len(part) == 1 or all(part.get(key) is None for key in (kind, f"{kind}_url", "url", "path", "base64"))


def _filled(message: Mapping[str, object], queue: MediaQueue) -> Mapping[str, object]:
    """Return a message with the next media of the queue in its places and marks."""
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": _placed(content, queue)} if holds_mark(content) else message
    if isinstance(content, list):
        return {**message, "content": [_filled_part(part, queue) for part in content]}
    return message


def _placed(text: str, queue: MediaQueue) -> list[dict[str, object]]:
    return [
        {"type": "text", "text": part.text}
        if isinstance(part, TextPart)
        else {"type": part.modality, part.modality: part.source}
        for part in queue.place(text)
    ]


def _filled_part(part: object, queue: MediaQueue) -> object:
    if not isinstance(part, _MAPPING):
        return part
    kept = {key: value for key, value in part.items() if key != _INDEX} if _INDEX in part else part
    if not _is_place(part):
        return kept
    modality, index = str(part["type"]), part.get(_INDEX)
    return {**kept, modality: queue.take(modality, index + 1 if isinstance(index, int) else None).source}
