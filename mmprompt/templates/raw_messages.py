"""``RawMessages``: a prompt that is a list of message dicts already; and messages that come as data, without slots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict, cast

from mmprompt.datasets.list_cells import list_of_cell
from mmprompt.errors import MMPromptError, PromptError, TemplateError, nearest, shown
from mmprompt.media.sources import as_written
from mmprompt.messages import PARTS, MediaRef, Message, Part, TextPart, part_of
from mmprompt.messages import ROLES as ROLE_NAMES
from mmprompt.templates.part_skeleton import PartDict, prompt_parts
from mmprompt.templates.prompt_list import copied
from mmprompt.templates.sample_view import SampleView, null_column

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
        return "".join([message_of(item, number).text for number, item in enumerate(self)])

    def __repr__(self) -> str:
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
    """Return one message dict as a message."""
    role, content = item.get("role"), item.get("content")
    if not isinstance(role, str) or not role:
        raise PromptError(f"message {number} has the role {shown(role)}", "give user, assistant or system")
    tool_calls = item.get("tool_calls") or ()
    if not isinstance(tool_calls, (list, tuple)):
        raise PromptError(f"tool_calls of message {number} is {type(tool_calls).__name__}", "give a list")
    return Message(role, content_parts(content, number), item.get("name"), tool_calls, item.get("tool_call_id"))


def content_parts(content: object, number: int) -> str | list[Part]:
    """Return the content of a message as text or parts; null is an empty text, and a part may be a plain text."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, (list, tuple)) and not isinstance(content, PARTS):
        content = [TextPart(item) if isinstance(item, str) else item for item in content]
    return prompt_parts(content, f"the content of message {number}")


def messages_in(column: str, view: SampleView) -> list[MessageDict]:
    """Return copies of the messages that a column holds; a hidden column holds none."""
    if column == view.hidden:
        return []
    if column not in view.raw:
        raise TemplateError(f"the sample has no column '{column}'", nearest(column, view.raw), code="MM603")
    value = view.raw[column]
    if value is None:
        raise null_column(column)
    messages = list_of_cell(value, cells=True) if view.list_cells else value
    if not isinstance(messages, (list, tuple)):
        what = f"column '{column}' holds {type(value).__name__}"
        raise TemplateError(what, "give a list of messages").located(column=column)
    return [_message_in(column, number, item) for number, item in enumerate(messages)]


def _message_in(column: str, number: int, item: object) -> MessageDict:
    if not isinstance(item, Mapping) or not isinstance(item.get("role"), str) or "content" not in item:
        what = f"element {number} of column '{column}' is not a message"
        raise TemplateError(what, 'give {"role": …, "content": …}').located(column=column)
    try:
        return cast("MessageDict", {**copied(item), "content": shown_content(item["content"])})
    except MMPromptError as error:
        raise error.located(column=column) from None


def example_messages(items: Iterable[object]) -> list[MessageDict]:
    """Return examples as messages. Each is a message or the role dict of a dialogue; blank text is left out."""
    return [_example(item) for item in items if not isinstance(item, str) or item.strip()]


def _example(item: object) -> MessageDict:
    if not isinstance(item, Mapping):
        what = f"the examples hold {shown(item) if isinstance(item, str) else type(item).__name__}, which has no role"
        raise TemplateError(what, "give messages, or role dicts")
    if "content" in item:
        return cast("MessageDict", {**copied(item), "content": shown_content(item["content"])})
    role, said = item.get("role"), item.get("prompt")
    begin, end = item.get("begin") or "", item.get("end") or ""
    if begin or end:
        if not all(isinstance(piece, str) for piece in (begin, said or "", end)):
            what = f"role {shown(role)} of an example has begin or end beside content parts or token ids"
            raise TemplateError(what, "leave them out")
        said = f"{begin}{said or ''}{end}"
    kept = {k: copied(item[k]) for k in ("name", "tool_calls", "tool_call_id") if k in item}
    message = {"role": ROLE_NAMES.get(str(role), str(role)), "content": copied(said or ""), **kept}
    return cast("MessageDict", message)


def shown_content(content: Any) -> Any:
    """Return a copy of a message's content in which bare base64 is a data URI, as prompts show it."""
    return [_shown_part(part) for part in content] if isinstance(content, (list, tuple)) else content


def _shown_part(item: object) -> object:
    if not isinstance(item, Mapping):
        return item
    copy = {key: copied(value) for key, value in item.items()}
    part = part_of(copy)
    if isinstance(part, MediaRef) and isinstance(part.source, str):
        source = as_written(part.source, part.modality)
        if source is not part.source:
            copy = {key: _with_source(value, part.source, source) for key, value in copy.items()}
            part = part_of(copy)
    return PartDict(copy, part)


def _with_source(value: object, source: str, written: object) -> object:
    """Return the value of a part's key with ``source`` replaced, where it is the value or stands in it."""
    if isinstance(value, Mapping):
        return {key: written if item is source else item for key, item in value.items()}
    return written if value is source else value
