"""The answer of a server: the reply of the model, or the reason of a refusal."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
    known = usage if isinstance(usage, dict) else None
    return Reply(text_of(choice["message"]), str(choice.get("finish_reason") or ""), known, choice["message"])


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
