"""``RawMessages``: a prompt that is a list of message dicts already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from mmprompt.errors import PromptError, shown
from mmprompt.messages import PARTS, Message, Part, TextPart
from mmprompt.templates.part_skeleton import prompt_parts

ROLES = ("system", "user", "assistant")
"""The roles that a template of messages may name; messages from a sample may have others."""


class MessageDict(TypedDict, total=False):
    """A message dict, as templates and prompts have it."""

    role: str
    content: str | Sequence[object] | None
    name: str
    tool_calls: Sequence[object]
    tool_call_id: str


class RawMessages(list[Any]):
    """A prompt of message dicts: ``role``, ``content`` (text or content part dicts) and further keys.

    ``str()`` joins the texts without a separator, as for a ``PromptList``.
    """

    __slots__ = ()

    def __str__(self) -> str:
        """Return the texts of all messages joined without a separator."""
        return "".join([message_of(item, number).text for number, item in enumerate(self)])

    def __repr__(self) -> str:
        """Show the list."""
        return f"RawMessages({super().__repr__()})"


def is_ready(prompt: object) -> bool:
    """Return True for a list of message dicts: each item is a dict with ``role`` and ``content``."""
    if not isinstance(prompt, (list, tuple)) or not prompt:
        return False
    return all(isinstance(item, Mapping) and "role" in item and "content" in item for item in prompt)


def ready_messages(prompt: Iterable[MessageDict], *, generate: bool) -> list[Message]:
    """Return message dicts as messages, with their roles as they are.

    With ``generate`` an empty last message of the assistant is left out: the model speaks there.

    Raises:
        PromptError: a message has no role or no valid content, or the prompt gives no message.
    """
    messages = [message_of(item, number) for number, item in enumerate(prompt)]
    if generate and messages:
        last = messages[-1]
        if last.role == "assistant" and not last.parts and not last.tool_calls:
            messages.pop()
    if not messages:
        raise PromptError("the prompt gives no message", "give a role some content")
    return messages


def message_of(item: MessageDict, number: int) -> Message:
    """Return one message dict as a message.

    Raises:
        PromptError: its role is not text, or its content is neither text nor content parts.
    """
    role, content = item.get("role"), item.get("content")
    if not isinstance(role, str) or not role:
        raise PromptError(f"message {number} has the role {shown(role)}", "give user, assistant or system")
    tool_calls = item.get("tool_calls") or ()
    if not isinstance(tool_calls, (list, tuple)):
        raise PromptError(f"tool_calls of message {number} is {type(tool_calls).__name__}", "give a list")
    return Message(role, content_parts(content, number), item.get("name"), tool_calls, item.get("tool_call_id"))


def content_parts(content: object, number: int) -> str | list[Part]:
    """Return the content of a message as text or parts; null is an empty text, and a part may be a plain text.

    Raises:
        PromptError: it is neither text nor a list of content parts.
    """
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, (list, tuple)) and not isinstance(content, PARTS):
        content = [TextPart(item) if isinstance(item, str) else item for item in content]
    return prompt_parts(content, f"the content of message {number}")
