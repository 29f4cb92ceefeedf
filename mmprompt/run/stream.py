"""Replies that come in pieces, as server-sent events: joined into the answer that the server gives in one piece."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_DONE = b"[DONE]"
_WHOLE = ("id", "index", "name", "role", "type")
"""Keys that a piece gives whole; some servers repeat them in each."""


def joined(body: bytes) -> dict[str, Any] | None:
    """Return a stream of pieces as one answer, or the error it holds; None if it breaks off.

    Raises:
        ValueError, LookupError, TypeError, AttributeError, RecursionError: the stream is not one of chat completions.
    """
    message: dict[str, Any] = {}
    usage: Any = None
    finish: Any = None
    ended = False
    for data in _events(body):
        if data == _DONE:
            ended = True
            break
        piece = json.loads(data)
        if piece.get("error"):
            return {"error": piece["error"]}
        usage = piece.get("usage") or usage
        for choice in piece["choices"]:
            if choice.get("index", 0) == 0:
                _collect(message, choice.get("delta") or {})
                finish = choice.get("finish_reason") or finish
    if not (ended or finish):
        return None
    return {"choices": [{"message": _whole(message), "finish_reason": finish}], "usage": usage}


def _events(body: bytes) -> Iterator[bytes]:
    """Yield the data of each event; comments and other fields are left out."""
    for line in body.splitlines():
        if line.startswith(b"data:"):
            yield line[5:].strip()


def _collect(into: dict[str, Any], delta: dict[str, Any]) -> None:
    """Add a piece: texts as lists of pieces, items of lists under their ``index``."""
    for key, value in delta.items():
        if isinstance(value, str) and key not in _WHOLE:
            into.setdefault(key, []).append(value)
        elif isinstance(value, dict):
            _collect(into.setdefault(key, {}), value)
        elif isinstance(value, list):
            items = into.setdefault(key, {})
            for item in value:
                _collect(items.setdefault(item.get("index", len(items)), {}), item)
        elif value is not None:
            into[key] = value


def _whole(collected: dict[Any, Any]) -> dict[str, Any]:
    """Return what was collected as the message it is: texts joined, items in order."""
    message: dict[str, Any] = {}
    for key, value in collected.items():
        if isinstance(value, list):
            message[key] = "".join(value)
        elif isinstance(value, dict) and all(isinstance(number, int) for number in value) and value:
            message[key] = [_whole(value[number]) for number in sorted(value)]
        else:
            message[key] = _whole(value) if isinstance(value, dict) else value
    return message
