"""Our messages as evalscope's; what its OpenAI client would drop or change is refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalscope.api import messages as runner

from mmprompt.errors import TargetError, shown
from mmprompt.targets.json_values import JSONObject

_SOUNDS = {"audio/wav": "wav", "audio/mpeg": "mp3"}
_VIDEOS = {"video/mp4": "mp4", "video/mpeg": "mpeg", "video/quicktime": "mov", "video/x-msvideo": "avi"}
_CLASSES = {
    "system": runner.ChatMessageSystem,
    "user": runner.ChatMessageUser,
    "assistant": runner.ChatMessageAssistant,
}


def to_evalscope(messages: list[JSONObject]) -> list[runner.ChatMessage]:
    """Return the messages of a request as evalscope's.

    Raises:
        TargetError: evalscope would drop or change something; with the numbers of message and part.
    """
    made = []
    for number, message in enumerate(messages, 1):
        try:
            made.append(_message(message))
        except TargetError as error:
            raise error.located(message=number) from None
    return made


def _message(message: Mapping[str, Any]) -> runner.ChatMessage:
    role, content = message["role"], message["content"]
    if role not in _CLASSES:
        raise TargetError(f"evalscope has no place for a message of the role {shown(role)}", "leave it out")
    for key in message.keys() - {"role", "content"}:
        raise TargetError(f"evalscope drops {shown(key)} of a message", "leave it out")
    if isinstance(content, str):
        return _CLASSES[role](content=content)
    if role != "user":
        what = f"evalscope joins the parts of a message of the role {role}, and leaves media out"
        raise TargetError(what, "give that message one text")
    parts = []
    for place, part in enumerate(content, 1):
        try:
            parts.append(_content(part))
        except TargetError as error:
            raise error.located(part=place) from None
    return runner.ChatMessageUser(content=parts)


def _content(part: Mapping[str, Any]) -> runner.Content:
    kind = part["type"]
    for key in part.keys() - {"type", kind}:
        raise TargetError(f"evalscope drops the key {shown(key)} of a part", "leave it out of the template")
    if kind == "text":
        return runner.ContentText(text=part["text"])
    inner = part[kind]
    source = inner.get("url") or f"data:audio/{inner['format']};base64,{inner['data']}"
    known = {"url", "detail"} if kind == "image_url" else {"url", "data", "format"}
    for key in inner.keys() - known:
        raise TargetError(f"evalscope drops the key {shown(key)} of a part", "leave it out of the template")
    if kind == "image_url":
        return _picture(source, inner.get("detail", "auto"))
    if kind == "input_audio":
        return runner.ContentAudio(audio=source, format=inner["format"])
    media_type = source[5:].partition(";")[0] if source.startswith("data:") else ""
    if kind == "audio_url" and media_type in _SOUNDS:
        return runner.ContentAudio(audio=source, format=_SOUNDS[media_type])
    if kind == "video_url" and media_type in _VIDEOS:
        return runner.ContentVideo(video=source, format=_VIDEOS[media_type])
    named, hint = media_type or f"the URL {shown(source)}", ""
    if kind == "audio_url" and media_type:
        hint = 'convert it: "extra_params": {"audio_format": "wav"}'
    raise TargetError(f"evalscope cannot carry {kind.partition('_')[0]} as {named}", hint or "leave the row out")


def _picture(source: str, detail: str) -> runner.ContentImage:
    if detail not in ("auto", "low", "high"):
        raise TargetError(f"evalscope has no detail {shown(detail)}", "use low, high or auto")
    if not source.startswith(("data:", "http://", "https://")):
        raise TargetError(f"evalscope opens {shown(source)} itself", "leave media.mode at inline")
    return runner.ContentImage(image=source, detail=detail)
