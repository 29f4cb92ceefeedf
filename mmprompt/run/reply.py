"""The answer of a server: the reply of the model, or the reason of a refusal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mmprompt.targets.json_values import JSONValue

_FIRST = 4096
"""Bytes; more than is shown, so that a key at the end is complete and can be hidden."""


class Reply(str):
    """The reply of a model: a string, with ``finish_reason`` and ``usage`` as the server returned them.

    ``message`` is the whole message, with other keys such as ``tool_calls`` and ``reasoning_content``. The text of a
    refusal is a reply too.
    """

    __slots__ = ("finish_reason", "message", "usage")
    finish_reason: str
    usage: Mapping[str, Any]
    message: Mapping[str, Any]

    def __new__(
        cls,
        text: str,
        finish_reason: str = "",
        usage: Mapping[str, JSONValue] | None = None,
        message: Mapping[str, JSONValue] | None = None,
    ) -> Reply:
        """Make a reply; see the class."""
        self = super().__new__(cls, text)
        self.finish_reason = finish_reason
        self.usage = usage or {}
        self.message = message or {}
        return self


def reply_of(answer: Mapping[str, Any]) -> Reply:
    """Return the first reply in the body of a server's answer.

    Raises:
        LookupError: there is none.
        TypeError: it is not text.
        AttributeError: a part of the body is not a mapping.
    """
    choice, usage = answer["choices"][0], answer.get("usage")
    reason = choice.get("finish_reason")
    return Reply(
        text_of(choice["message"]),
        reason if isinstance(reason, str) else "",
        usage if isinstance(usage, dict) else None,
        choice["message"],
    )


def text_of(message: Mapping[str, JSONValue]) -> str:
    """Return the text of a model's message: its content, or its refusal.

    Raises:
        TypeError: the content is not text.
        AttributeError: ``message`` is not a mapping.
    """
    content = message.get("content")
    if isinstance(content, list):
        content = "".join([_text(part.get("text", "") if isinstance(part, dict) else None) for part in content])
    return _text(content or message.get("refusal") or "")


def _text(value: JSONValue) -> str:
    if not isinstance(value, str):
        raise TypeError("the content is not text")
    return value


def said_in(body: bytes) -> str:
    """Return the message in the body of a refusal, where OpenAI-like servers put it; else the body's first words."""
    try:
        error = json.loads(body)
        error = error.get("error", error.get("detail", error))
        said = (error.get("message") or error or "") if isinstance(error, dict) else error
        return said if isinstance(said, str) else json.dumps(said)
    except (ValueError, AttributeError, RecursionError):
        return body[:_FIRST].decode("utf-8", "replace").strip()


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
