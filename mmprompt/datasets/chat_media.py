"""Chats whose media stand in columns: ``{"type": "image"}`` takes the next of ``images``, as in datasets for TRL."""

from __future__ import annotations

from collections.abc import Mapping

from mmprompt.datasets.layouts.conversations import MEDIA, media_of
from mmprompt.datasets.placeholders import MediaQueue
from mmprompt.datasets.sample import Sample
from mmprompt.messages import MODALITIES

_COLUMNS = frozenset(name for names in MEDIA.values() for name in names)
_INDEX = "index"
"""The key with which some datasets number their parts: which medium of its modality it is, from 0."""


def with_media(sample: Sample) -> Sample:
    """Return a chat with the media of its columns in the parts that name none.

    A chat stays as it is if its parts name their media, or if its contents are strings.

    Raises:
        RowError: there are more or fewer parts than media.
    """
    columns = sample.columns
    messages = columns["messages"]
    if _COLUMNS.isdisjoint(columns) or not isinstance(messages, list):
        return sample
    parts = [part for message in messages for part in _content(message) if isinstance(part, Mapping)]
    texts_alone = bool(parts) and all(part.get("type") == "text" for part in parts)
    if not texts_alone and not any(map(_is_place, parts)):
        return sample
    queue = MediaQueue(media_of(sample), '{"type": "%s"}')
    filled = [
        {**message, "content": [_filled(part, queue) for part in _content(message)]} if _content(message) else message
        for message in messages
    ]
    queue.close()
    return sample._replace(columns={**columns, "messages": filled}, sent=sample.sent | _COLUMNS)


def _content(message: object) -> list[object]:
    content = message.get("content") if isinstance(message, Mapping) else None
    return content if isinstance(content, list) else []


def _is_place(part: Mapping[str, object]) -> bool:
    kind = part.get("type")
    return kind in MODALITIES and all(part.get(key) is None for key in (kind, f"{kind}_url", "url", "path", "base64"))


def _filled(part: object, queue: MediaQueue) -> object:
    if not isinstance(part, Mapping):
        return part
    kept = {key: value for key, value in part.items() if key != _INDEX}
    if not _is_place(part):
        return kept
    modality, index = str(part["type"]), part.get(_INDEX)
    return {**kept, modality: queue.take(modality, index + 1 if isinstance(index, int) else None).source}
