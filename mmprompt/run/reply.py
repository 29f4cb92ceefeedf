"""What a server answers: a reply of its model, or why there is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_FIRST = 4096
"""Bytes; more than is shown, so that a key at the end is whole, to be hidden."""


class Reply(str):
    """What a model said: text, with ``finish_reason`` and ``usage`` as the server gave them.

    ``message`` is the whole message, with whatever else it holds: ``tool_calls``, ``reasoning_content``. A refusal is
    text too.
    """

    __slots__ = ("finish_reason", "message", "usage")
    finish_reason: str
    usage: Mapping[str, Any]
    message: Mapping[str, Any]

    def __new__(
        cls,
        text: str,
        finish_reason: str = "",
        usage: Mapping[str, Any] | None = None,
        message: Mapping[str, Any] | None = None,
    ) -> Reply:
        """Make a reply; see the class."""
        self = super().__new__(cls, text)
        self.finish_reason = finish_reason
        self.usage = usage or {}
        self.message = message or {}
        return self


def text_of(message: Mapping[str, Any]) -> str:
    """Return the text of a model's message: its content, or its refusal.

    Raises:
        TypeError: it is no text.
        AttributeError: this is no message.
    """
    content = message.get("content")
    if isinstance(content, list):
        content = "".join([part.get("text", "") for part in content])
    text = content or message.get("refusal") or ""
    if not isinstance(text, str):
        raise TypeError("content that is no text")
    return text


def said_in(body: bytes) -> str:
    """Return what the body of a refusal says: the message that OpenAI-like servers give, else its first words."""
    try:
        error = json.loads(body)
        error = error.get("error", error.get("detail", error))
        said = (error.get("message") or error or "") if isinstance(error, dict) else error
        return said if isinstance(said, str) else json.dumps(said)
    except (ValueError, AttributeError, RecursionError):
        return body[:_FIRST].decode("utf-8", "replace").strip()
