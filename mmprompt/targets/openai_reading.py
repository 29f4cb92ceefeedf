"""Reads the chat form of OpenAI and related forms back into messages. Opens no file and fetches no URL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mmprompt.errors import MMPromptError, SourceError, TargetError, nearest, shown
from mmprompt.errors.findings import Note
from mmprompt.media.data_uri import DataURI, decode_payload, parse_data_uri
from mmprompt.media.media_types import VIDEO_FRAMES, agree, media_type_for, normal_type, sniff
from mmprompt.media.sources import classify
from mmprompt.media.type_check import not_media
from mmprompt.messages import MODALITIES, ROLES, MediaPart, MediaRef, Message, Pairs, Part, TextPart
from mmprompt.targets.json_values import JSONValue, plain

AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/mpeg": "mp3",
    "audio/flac": "flac",
    "audio/ogg": "ogg",
    "audio/mp4": "m4a",
    "audio/aac": "aac",
    "audio/webm": "webm",
}
"""Media types, and the ``format`` of ``input_audio`` for each."""

_TEXTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
_Mapping = Mapping[str, JSONValue]
"""A message or content part as the caller gave it. ``plain`` copies and checks its values."""

_MEDIA = {form: modality for modality in MODALITIES for form in (f"{modality}_url", f"input_{modality}", modality)}
_KINDS = (*_TEXTS, *_MEDIA)
"""The types of content parts that are read. They are also the keys of their text or source."""

_MOST_FRAMES = 1_000_000
"""In one data URI. There is no policy here, and a million tiny frames would fill the memory."""

_new = tuple.__new__  # half the time of the class, and this runs for every message
_FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id")
_REPLY_ONLY = ("refusal", "audio", "function_call", "annotations")
"""Keys of a reply, accepted if they are empty, since servers send them so."""


def from_openai(messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Read messages of any OpenAI-like form: the output of ``to_openai``, the Responses and the Hugging Face parts.

    Content is a string, or a list of strings and content parts; except in a user message it may be None. Data URIs and
    the data of ``input_audio`` become ``MediaPart`` with the type that the bytes say. Every other source becomes a
    ``MediaRef`` as written, without ``name``. Keys beside a source go to ``options``, further keys of a part to
    ``extra``. An empty text part is left out, and a ``refusal`` becomes text.

    ``from_openai(to_openai(messages)) == messages`` for the target ``vllm`` if each ``MediaPart`` has no ``origin``,
    ``changes`` and ``findings`` and no ``form`` but ``input_audio``, and each ``MediaRef`` is an http(s) URL without
    ``name`` and ``form``. The target ``openai`` sends all audio as ``input_audio`` and frames as images, and they come
    back as such.

    Raises:
        TargetError: a message or content part of an unknown form. ``where`` has its numbers.
        SourceError: a data URI that cannot be decoded, or whose bytes are another kind of medium.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise TargetError(f"the messages are {type(messages).__name__}", "give a list of mappings", code="MM007")
    read = []
    for number, message in enumerate(messages, 1):
        try:
            read.append(_message(message))
        except MMPromptError as error:
            raise error.located(message=number) from None
    return read


def _message(message: object) -> Message:
    if type(message) is dict and len(message) == 2:
        role, content = message.get("role"), message.get("content")
        if type(role) is str and role and content:  # nearly every message
            if type(content) is str:
                return _new(Message, (ROLES.get(role, role), (_new(TextPart, (content, ())),), None, (), None))
            return Message(role, _parts(content))
    if not isinstance(message, Mapping):
        raise TargetError(f"{type(message).__name__} is not a mapping", "give role and content", code="MM007")
    role = message.get("role")
    if not isinstance(role, str) or not role:
        raise TargetError("the message has no role", "give a role such as user", code="MM607")
    for key in message:
        if key not in _FIELDS:
            _refuse_key(key, message[key])
    if role == "user" and message.get("content") is None and not message.get("tool_calls"):
        raise TargetError("the message has no content", "give text or parts, or remove the message", code="MM007")
    parts = _parts(message.get("content"))
    calls = plain(message.get("tool_calls") or [])
    if not isinstance(calls, list):
        raise TargetError(f"tool_calls is {type(calls).__name__}", "give a list", code="MM007")
    return Message(role, parts, _optional(message, "name"), calls, _optional(message, "tool_call_id"))


def _refuse_key(key: object, value: object) -> None:
    """Refuse a message key that ``Message`` has no field for; empty keys of replies are left out."""
    if key in _REPLY_ONLY:
        if value:
            raise TargetError(f"a message cannot hold the key {shown(key)}", "remove it", code="MM007")
        return
    if key == "type" and value == "message":  # what the Responses form calls it
        return
    raise TargetError(f"unknown key {shown(key)}", nearest(key, _FIELDS), code="MM007")


def _optional(message: _Mapping, key: str) -> str | None:
    value = message.get(key)
    if value is not None and not isinstance(value, str):
        raise TargetError(f"{key} is {shown(value)}", "give a string", code="MM007")
    return value


def _contents(content: object) -> Iterator[object]:
    if type(content) is list:  # nearly every one
        return iter(content)
    if content is None:
        return iter(())
    if isinstance(content, (str, Mapping)):
        return iter((content,))
    if isinstance(content, Sequence) and not isinstance(content, (bytes, bytearray)):
        return iter(content)
    raise TargetError(f"the content is {type(content).__name__}", "give text or a list of content parts", code="MM007")


def _parts(content: object) -> list[Part]:
    parts: list[Part] = []
    for part in _contents(content):
        try:
            parts.append(_part(part))
        except MMPromptError as error:
            raise error.located(part=len(parts) + 1) from None
    return parts


def _part(part: object) -> Part:
    if isinstance(part, str):
        return TextPart(part)
    if not isinstance(part, (dict, Mapping)):
        raise TargetError(
            f"a content part is {type(part).__name__}", "give text or a mapping with a type", code="MM007"
        )
    if len(part) == 2 and part.get("type") == "text" and type(part.get("text")) is str:  # nearly every text
        return _new(TextPart, (part["text"], ()))
    kind = _kind(part)
    if kind in _MEDIA:
        return _media_part(part, kind)
    key = _TEXTS[kind]
    text = part.get(key)
    if not isinstance(text, str):
        raise TargetError(f"the {key} of a part of type {kind} is {type(text).__name__}", "give a string", code="MM007")
    return TextPart(text, _rest(part, ("type", key)))


def _kind(part: _Mapping) -> str:
    """Return the type of a content part. Without ``type`` the only known key says it."""
    kind = part.get("type")
    if kind is None:
        said = [key for key in part if key in _KINDS and part[key] is not None]
        if len(said) != 1:
            raise TargetError("a content part has no type", f"give one of {', '.join(_KINDS)}", code="MM007")
        return said[0]
    if kind not in _KINDS:
        raise TargetError(f"unknown content part type {shown(kind)}", nearest(kind, _KINDS), code="MM007")
    return str(kind)


def _media_part(part: _Mapping, kind: str) -> MediaPart | MediaRef:
    modality = _MEDIA[kind]
    keys = (kind, f"{modality}_url", modality, "url", "path", "base64")
    key = kind if part.get(kind) is not None else next((k for k in keys if part.get(k) is not None), None)
    if key is None:
        raise TargetError(
            f"a part of type {kind} holds no {modality}", f"give its source under {shown(kind)}", code="MM715"
        )
    source, extra = part[key], _rest(part, ("type", key))
    options: Pairs = ()
    declared = None
    form = "input_audio" if kind == "input_audio" else ""
    holder: _Mapping = source if isinstance(source, (dict, Mapping)) else {}
    if isinstance(holder.get("url"), str):
        source, options = holder["url"], _rest(holder, ("url",))
    elif isinstance(holder.get("data"), str):
        form, declared = "input_audio", holder.get("format")
        source, options = holder["data"], _rest(holder, ("data", "format"))
    if kind == "input_image":  # the Responses form has `detail` beside the source, the chat form inside it
        options += tuple([pair for pair in extra if pair[0] == "detail"])
        extra = tuple([pair for pair in extra if pair[0] != "detail"])
    what = classify(source)
    ref = MediaRef(modality, source, form if modality == "audio" else "", options, extra)
    if what.kind == "data" or (what.kind == "base64" and ref.form):
        return _read(ref, str(what.value), declared)
    return ref


def _read(ref: MediaRef, source: str, declared_format: object) -> MediaPart:
    """Return the part of a data URI, or of bare base64 in ``input_audio``."""
    declared, pieces, findings = _decoded(source)
    if isinstance(declared_format, str):
        name = declared_format.lower()
        declared = next((kind for kind, known in AUDIO_FORMATS.items() if known == name), f"audio/{name}")
    if ref.modality == "video" and (len(pieces) > 1 or declared == VIDEO_FRAMES):
        for frame in pieces:
            _judged(frame, "image")
        media_type, data, frames = VIDEO_FRAMES, b"", tuple(pieces)
    elif len(pieces) > 1:
        raise SourceError(
            f"a data URI of {ref.modality} has {len(pieces)} payloads",
            "give one; only a video has frames",
            code="MM209",
        )
    else:
        media_type, data, frames = _judged(pieces[0], ref.modality), pieces[0], ()
        if declared and not agree(normal_type(declared), media_type):
            findings += (Note("MM204", f"declared {shown(declared)[1:-1]}, bytes are {media_type}"),)
    return MediaPart(ref.modality, media_type, data, frames, ref.form, ref.options, ref.extra, findings=findings)


def _decoded(source: str) -> tuple[str, list[bytes], tuple[Note, ...]]:
    """Return the declared type, the bytes of each payload, and the repairs of its base64 in words."""
    uri = parse_data_uri(source) if source[:5].lower() == "data:" else DataURI("", True, source)
    count = uri.payload.count(",") + 1
    if uri.is_base64 and count > _MOST_FRAMES:
        raise SourceError(
            f"a data URI has {count} frames, more than {_MOST_FRAMES}", "give the video file itself", code="MM506"
        )
    pieces: list[bytes] = []
    findings: dict[Note, None] = {}
    for payload in uri.payload.split(",") if uri.is_base64 else (uri.payload,):
        data, mended = decode_payload(payload, uri.is_base64)
        pieces.append(data)
        findings.update(dict.fromkeys(mended))
    return uri.media_type, pieces, tuple(findings)


def _judged(data: bytes, modality: str) -> str:
    """Return the media type that the bytes say. It must be one of the modality."""
    kind = sniff(data)
    media_type = media_type_for(kind, modality) if kind else None
    if media_type is None:
        found = kind.name if kind else not_media(data).name
        raise SourceError(f"the bytes are not {modality} but {found}", "put the media itself there", code="MM213")
    return media_type


def _rest(mapping: _Mapping, used: tuple[str, ...]) -> Pairs:
    """Return the keys of a part that are not ``used``. Keys of other parts may be null, as columnar files fill them."""
    rest = []
    for key, value in mapping.items():
        if key in used:
            continue
        if key in _KINDS:
            if value is not None:
                raise TargetError(
                    f"a content part holds {shown(key)} beside {shown(used[-1])}", "write two parts", code="MM007"
                )
            continue
        rest.append((key, plain(value)))
    return tuple(rest)
