"""Our messages as inspect-ai's, and back.

inspect-ai has types for pictures, WAV, MP3 and three kinds of video. Other media, and URLs (it would fetch them), go as
``ContentData``. A part's other keys go into ``internal``, so that nothing is lost on the way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any, cast

from inspect_ai import model as runner
from inspect_ai.tool import ToolCall

from mmprompt.errors import TargetError, shown
from mmprompt.messages import Message
from mmprompt.render.request import Request
from mmprompt.targets.json_values import JSONObject
from mmprompt.targets.openai import OpenAIWriter, from_openai
from mmprompt.targets.part_writer import Wire, text_payload
from mmprompt.targets.wire_json import Payload

OURS = "mmprompt"
"""The provider's name, and the key of what is ours in ``internal``, ``metadata`` and ``ContentData``."""

_AUDIO = {"audio/wav": "wav", "audio/mpeg": "mp3"}
_VIDEO = {"video/mp4": "mp4", "video/mpeg": "mpeg", "video/quicktime": "mov"}
_CLASSES = (runner.ChatMessageSystem, runner.ChatMessageUser, runner.ChatMessageAssistant, runner.ChatMessageTool)
_MESSAGES = dict(zip(("system", "user", "assistant", "tool"), _CLASSES, strict=True))


def to_inspect(messages: Iterable[Message], target: str = "vllm") -> list[runner.ChatMessage]:
    """Return messages for inspect-ai, their media as data URIs.

    Raises:
        TargetError: a medium has not been read, the target does not accept it, or inspect-ai lacks a role.
    """
    return list(map(_chat_message, OpenAIWriter(target, payload=Payload).write(messages), count(1)))


def from_inspect(messages: Iterable[runner.ChatMessage]) -> list[Message]:
    """Return messages of inspect-ai as ours. The messages of ``to_inspect`` come back as ``from_openai`` gives them.

    Raises:
        TargetError: a content part has no form in a chat request, such as reasoning.
        SourceError: the data URI of a medium is not valid, or is of another modality.
    """
    return from_openai([wire_of(message) for message in messages])


def request_messages(request: Request) -> list[runner.ChatMessage]:
    """Return the messages of a request for inspect-ai."""
    return list(map(_chat_message, cast("list[Wire]", request.unencoded["messages"]), count(1)))


def _chat_message(wire: Mapping[str, Any], number: int) -> runner.ChatMessage:
    role, content = wire["role"], wire["content"] or ""
    if role not in _MESSAGES:
        what = f"message {number}: inspect-ai has no role {shown(role)}"
        raise TargetError(what, f"use one of {', '.join(_MESSAGES)}")
    beside = {key: value for key, value in wire.items() if key not in ("role", "content")}
    fields: dict[str, Any] = {"tool_call_id": wire.get("tool_call_id")} if role == "tool" else {}
    if "tool_calls" in wire:
        fields["tool_calls"] = [_tool_call(call, number) for call in wire["tool_calls"]]
    parts = content if isinstance(content, str) else [_content(part) for part in content]
    return _MESSAGES[role](content=parts, metadata={OURS: beside} if beside else None, **fields)


def _tool_call(call: Any, number: int) -> ToolCall:
    try:
        arguments = json.loads(call["function"]["arguments"])
        return ToolCall(id=call["id"], function=call["function"]["name"], arguments=arguments)
    except (KeyError, TypeError, ValueError):
        raise TargetError(f"message {number}: {shown(call)} is not a tool call", "give id and function") from None


def _content(part: Mapping[str, Any]) -> runner.Content:
    """Return a content part for inspect-ai; ``internal`` holds the part without its source."""
    kind = part["type"]
    if kind == "text":
        extra = {key: value for key, value in part.items() if key not in ("type", "text")}
        return runner.ContentText(text=part["text"], internal={OURS: extra} if extra else None)
    key = "data" if kind == "input_audio" else "url"
    source = part[kind][key]
    rest = {**part, kind: {name: value for name, value in part[kind].items() if name != key}}
    media_type, text = "", source
    if isinstance(source, Payload):
        media_type, text = source.part.media_type, text_payload(source.prefix, source.part)
    uri = f"data:{media_type};base64,{text}" if kind == "input_audio" else text
    if kind == "image_url" and media_type:
        detail = said if (said := rest[kind].get("detail")) in ("low", "high", "original") else "auto"
        return runner.ContentImage(image=uri, detail=detail, internal={OURS: rest})
    if media_type in _AUDIO:
        return runner.ContentAudio(audio=uri, format=_AUDIO[media_type], internal={OURS: rest})
    if media_type in _VIDEO:
        return runner.ContentVideo(video=uri, format=_VIDEO[media_type], internal={OURS: rest})
    return runner.ContentData(data={OURS: {**rest, kind: {key: text, **rest[kind]}}})


def wire_of(message: runner.ChatMessage) -> JSONObject:
    """Return a message of inspect-ai in OpenAI's form. One that we made comes back unchanged.

    Raises:
        TargetError: a content part has no form there, a medium is not a data URI, or a tool failed.
    """
    if getattr(message, "error", None) is not None:
        raise TargetError("a tool's error has no form in a chat request", "leave it to inspect-ai")
    content, ours = message.content, message.source != "generate"  # a reply is data: keys of ours in it mean nothing
    if not isinstance(content, str):
        content = [_part(item, ours) for item in content]
    calls = getattr(message, "tool_calls", None)
    if (beside := _kept(message.metadata)) is None:
        beside = {"tool_calls": [_call(call) for call in calls]} if calls else {}
        beside.update({"tool_call_id": message.tool_call_id} if message.role == "tool" else {})
    return {"role": message.role, "content": None if calls and not content else content, **beside}


def _kept(holder: object) -> dict[str, Any] | None:
    kept = holder.get(OURS) if isinstance(holder, dict) else None
    return kept if isinstance(kept, dict) else None


def _call(call: ToolCall) -> JSONObject:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.function, "arguments": arguments}}


def _part(content: runner.Content, ours: bool) -> dict[str, Any]:
    kept = _kept(content.data if content.type == "data" else content.internal) if ours else None
    if content.type == "text":
        return {**(kept or {}), "type": "text", "text": content.text}
    if content.type == "data" and kept is not None:
        return kept
    uri = getattr(content, content.type) if content.type in ("image", "audio", "video") else ""
    if not uri.startswith("data:"):
        raise TargetError(f"a part of type {content.type} is not a data URI of a medium", "leave it to inspect-ai")
    if kept is None and content.type == "audio":
        kept = {"type": "input_audio", "input_audio": {"format": content.format}}
    elif kept is None:
        detail = getattr(content, "detail", "auto")
        kept = {"type": (kind := f"{content.type}_url"), kind: {} if detail == "auto" else {"detail": detail}}
    kind = kept["type"]
    source = {"data": uri.partition(",")[2]} if kind == "input_audio" else {"url": uri}
    return {**kept, kind: {**source, **kept[kind]}}
