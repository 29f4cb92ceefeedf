"""``RawMessages``: a prompt that is ready messages, role and content, and how a meta template of messages merges in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mmprompt.errors import MMPromptError, PromptError, TemplateError, nearest, shown
from mmprompt.messages import PARTS, Message, Part, TextPart, part_of

ROLES = ("system", "user", "assistant")
"""The roles that a template of messages may write; messages from a sample may have others."""


class RawMessages(list[Any]):
    """A prompt of plain message dicts: ``role`` and ``content`` (text or content part dicts), and what they carry.

    ``str()`` joins the texts without a separator, as that of a ``PromptList``.
    """

    __slots__ = ()

    def __str__(self) -> str:
        """Return the texts of all messages joined without a separator."""
        return "".join([message_of(item, number).text for number, item in enumerate(self)])

    def __repr__(self) -> str:
        """Show the list."""
        return f"RawMessages({super().__repr__()})"


def is_ready(prompt: object) -> bool:
    """Tell whether a prompt is ready messages: a list whose items are all dicts with ``role`` and ``content``."""
    if not isinstance(prompt, (list, tuple)) or not prompt:
        return False
    return all(isinstance(item, Mapping) and "role" in item and "content" in item for item in prompt)


def ready_messages(prompt: Iterable[Mapping[str, Any]], *, generate: bool) -> list[Message]:
    """Return ready message dicts as messages, with their roles as they are.

    With ``generate`` an empty last message of the assistant is left out: there the model speaks.

    Raises:
        PromptError: content that is neither text nor content parts, or a prompt that gives no message.
    """
    messages = [message_of(item, number) for number, item in enumerate(prompt)]
    if generate and messages:
        last = messages[-1]
        if last.role == "assistant" and not last.parts and not last.tool_calls:
            messages.pop()
    if not messages:
        raise PromptError("the prompt gives no message", "give a role some content")
    return messages


def message_of(item: Mapping[str, Any], number: int) -> Message:
    """Return one message dict as a message.

    Raises:
        PromptError: its role is no text, or its content neither text nor content parts.
    """
    role, content = item.get("role"), item.get("content")
    if not isinstance(role, str) or not role:
        raise PromptError(f"message {number} has the role {shown(role)}", "give user, assistant or system")
    tool_calls = item.get("tool_calls") or ()
    if not isinstance(tool_calls, (list, tuple)):
        raise PromptError(f"tool_calls of message {number} is {type(tool_calls).__name__}", "give a list")
    return Message(role, content_parts(content, number), item.get("name"), tool_calls, item.get("tool_call_id"))


def content_parts(content: object, number: int) -> str | list[Part]:
    """Return the content of a message as text or parts; null is no content.

    Raises:
        PromptError: it is neither text nor a list of content parts.
    """
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, (list, tuple)) or isinstance(content, PARTS):
        hint = "give text, or a list of content parts"
        raise PromptError(f"the content of message {number} is {type(content).__name__}", hint)
    parts: list[Part] = []
    for part in content:
        if isinstance(part, PARTS):
            parts.append(part)
        elif isinstance(part, str):
            parts.append(TextPart(part))
        elif isinstance(part, Mapping):
            parts.append(part_of(part))
        else:
            what = f"the content of message {number} holds {type(part).__name__}"
            raise PromptError(what, "its list holds content parts")
    return parts


def meta_messages(meta: Sequence[Any]) -> tuple[Message, ...]:
    """Return a meta template that is a list of messages, checked.

    Raises:
        TemplateError: with the place as ``where.template``.
    """
    messages = []
    for number, item in enumerate(meta):
        place = f"meta_template[{number}]"
        if not isinstance(item, Mapping) or "role" not in item or "content" not in item:
            hint = 'give {"role": "system", "content": "…"}, or a meta template with \'round\''
            raise TemplateError("no message", hint).located(template=place)
        if item["role"] not in ROLES:
            what = f"unknown role {shown(item['role'])} in a meta template of messages"
            raise TemplateError(what, nearest(item["role"], ROLES)).located(template=place)
        for key in item:
            if key not in ("role", "content", "name"):
                hint = nearest(key, ("role", "content", "name"))
                raise TemplateError(f"unknown key {shown(key)}", hint).located(template=place)
        try:
            messages.append(message_of(item, number))
        except MMPromptError as error:
            raise TemplateError(error.what, error.hint).located(template=place) from None
    return tuple(messages)


def merge_meta(meta: Sequence[Message], prompt: Sequence[Message]) -> list[Message]:
    """Return the messages of a prompt with those of a meta template merged in.

    Where both have the same role at the same position, the contents are put together, the meta template's first. A
    role of the meta template that the rest of the prompt lacks is put in there; otherwise the prompt's message is kept
    and the search goes on.
    """
    out: list[Message] = []
    at = 0
    for own in meta:
        while at < len(prompt) and prompt[at].role != own.role:
            if all(message.role != own.role for message in prompt[at:]):
                break
            out.append(prompt[at])
            at += 1
        if at < len(prompt) and prompt[at].role == own.role:
            out.append(_put_before(own, prompt[at]))
            at += 1
        else:
            out.append(own)
    return [*out, *prompt[at:]]


def _put_before(own: Message, message: Message) -> Message:
    """Return a message that says ``own`` first; two texts that touch become one."""
    before, after = list(own.parts), list(message.parts)
    last, first = before[-1] if before else None, after[0] if after else None
    if isinstance(last, TextPart) and isinstance(first, TextPart) and last.extra == first.extra:
        before[-1:], after[0] = [], TextPart(last.text + first.text, first.extra)
    return message._replace(parts=(*before, *after), name=message.name or own.name)
