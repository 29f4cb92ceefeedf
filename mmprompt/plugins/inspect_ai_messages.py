"""Messages ⇄ those of inspect-ai.

inspect-ai has types for pictures, WAV, MP3 and a few kinds of video. Other media, and URLs (which it would fetch), go
as ``ContentData``. What a part says beside its source is kept in ``internal``, so that nothing changes on the way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    Content,
    ContentAudio,
    ContentData,
    ContentImage,
    ContentText,
    ContentVideo,
)
from inspect_ai.tool import ToolCall

from mmprompt.errors import TargetError, shown
from mmprompt.parts import Message
from mmprompt.targets.openai import OpenAIWriter, from_openai
from mmprompt.targets.part_writer import text_payload
from mmprompt.targets.wire_json import Payload

OURS = "mmprompt"
"""The key of what is ours in ``internal``, ``metadata`` and ``ContentData``, and the provider's name."""

AUDIO = {"audio/wav": "wav", "audio/mpeg": "mp3"}
VIDEO = {"video/mp4": "mp4", "video/mpeg": "mpeg", "video/quicktime": "mov"}
DETAILS = ("auto", "low", "high", "original")
_MESSAGES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


def to_inspect(messages: Iterable[Message], target: str = "vllm") -> list[ChatMessage]:
    """Return messages for inspect-ai, their media as data URIs; ``from_inspect`` reads them back.

    Raises:
        TargetError: media that has not been read, what the target does not take, or a role that inspect-ai lacks.
    """
    return chat_messages(OpenAIWriter(target, payload=Payload).write(messages))


def from_inspect(messages: Iterable[ChatMessage]) -> list[Message]:
    """Return messages of inspect-ai as ours.

    Raises:
        TargetError: a content part that has no form in a chat request, such as reasoning.
        SourceError: media that are no data URI of what they stand for.
    """
    return from_openai([wire_of(message) for message in messages])


def chat_messages(wires: Sequence[Mapping[str, Any]]) -> list[ChatMessage]:
    """Return messages in OpenAI's form, whose media may be a ``Payload``, for inspect-ai.

    Raises:
        TargetError: a role or tool call that inspect-ai lacks.
    """
    return [_chat_message(wire, number) for number, wire in enumerate(wires, 1)]


def _chat_message(wire: Mapping[str, Any], number: int) -> ChatMessage:
    role, content = wire["role"], wire["content"] or ""
    beside = {key: value for key, value in wire.items() if key not in ("role", "content")}
    fields = {
        "content": content if isinstance(content, str) else [_content(part) for part in content],
        "metadata": {OURS: beside} if beside else None,
    }
    if role == "tool":
        return ChatMessageTool(tool_call_id=wire.get("tool_call_id"), function=wire.get("name"), **fields)
    if role not in _MESSAGES:
        raise TargetError(f"message {number}: inspect-ai has no role {shown(role)}", "use user, assistant or system")
    if "tool_calls" in wire:
        fields["tool_calls"] = [_tool_call(call, number) for call in wire["tool_calls"]]
    return _MESSAGES[role](**fields)


def _tool_call(call: Any, number: int) -> ToolCall:
    try:
        arguments = json.loads(call["function"]["arguments"])
        return ToolCall(id=call["id"], function=call["function"]["name"], arguments=arguments)
    except (KeyError, TypeError, ValueError):
        raise TargetError(f"message {number}: {shown(call)} is no tool call", "give id and function") from None


def _content(part: Mapping[str, Any]) -> Content:
    """Return a content part for inspect-ai; ``internal`` holds the part without its source."""
    kind = part["type"]
    if kind == "text":
        extra = {key: value for key, value in part.items() if key != "text"}
        return ContentText(text=part["text"], internal={OURS: extra} if len(extra) > 1 else None)
    key = "data" if "data" in part[kind] else "url"
    source = part[kind][key]
    rest = {**part, kind: {name: value for name, value in part[kind].items() if name != key}}
    if not isinstance(source, Payload):
        return ContentData(data={OURS: {**rest, kind: {**rest[kind], key: source}}})
    media_type, internal = source.part.media_type, {OURS: rest}
    text = text_payload(source.prefix, source.part)
    uri = text if source.prefix else f"data:{media_type};base64,{text}"
    if kind == "image_url":
        detail = rest[kind].get("detail", "auto")
        return ContentImage(image=uri, detail=detail if detail in DETAILS else "auto", internal=internal)
    if media_type in AUDIO:
        return ContentAudio(audio=uri, format=AUDIO[media_type], internal=internal)
    if media_type in VIDEO:
        return ContentVideo(video=uri, format=VIDEO[media_type], internal=internal)
    return ContentData(data={OURS: {**rest, kind: {**rest[kind], key: text}}})


def wire_of(message: ChatMessage) -> dict[str, Any]:
    """Return a message of inspect-ai in OpenAI's form, just as it was if it was made by ``chat_messages``.

    Raises:
        TargetError: a content part that has no form there, or a tool's error.
    """
    content = message.content if isinstance(message.content, str) else [_part(item) for item in message.content]
    beside = (message.metadata or {}).get(OURS)
    if beside is None and getattr(message, "error", None) is not None:
        raise TargetError("a tool's error is no content", "let inspect-ai write it")
    calls = getattr(message, "tool_calls", None)
    if beside is None:
        beside = {"tool_calls": [_call_dict(call) for call in calls]} if calls else {}
        if message.role == "tool":
            beside["tool_call_id"] = message.tool_call_id
    return {"role": message.role, "content": None if calls and not content else content, **beside}


def _call_dict(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.function, "arguments": json.dumps(call.arguments, ensure_ascii=False)}
    return {"id": call.id, "type": "function", "function": function}


def _part(content: Content) -> dict[str, Any]:
    """Return the content part of a message in OpenAI's form."""
    kept = content.internal.get(OURS) if isinstance(content.internal, dict) else None
    if isinstance(content, ContentText):
        return {"type": "text", **(kept or {}), "text": content.text}
    if isinstance(content, ContentData) and OURS in content.data:
        return dict(content.data[OURS])
    if not isinstance(content, (ContentImage, ContentAudio, ContentVideo)):
        raise TargetError(f"a part of type {content.type} has no form in a chat request", "take it out")
    uri = getattr(content, content.type)
    if not uri.startswith("data:"):
        raise TargetError(f"{content.type} {shown(uri)} has not been read", "give a data URI")
    part = kept or {"type": f"{content.type}_url", f"{content.type}_url": {}}
    kind = part["type"]
    if kind == "input_audio":
        return {**part, kind: {"data": uri.partition(",")[2], **part[kind]}}
    if content.type == "image" and kept is None and content.detail != "auto":
        return {**part, kind: {"url": uri, "detail": content.detail}}
    return {**part, kind: {"url": uri, **part[kind]}}
