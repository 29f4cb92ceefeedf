"""Reading the chat form of OpenAI, and its relatives, back into messages. Nothing is opened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mmprompt.errors import MMPromptError, SourceError, TargetError, nearest, shown
from mmprompt.media.data_uri import DataURI, decode_payload, parse_data_uri
from mmprompt.media.media_types import VIDEO_FRAMES, agree, media_type_for, normal_type, sniff
from mmprompt.media.sources import classify
from mmprompt.media.type_check import not_media
from mmprompt.messages import MODALITIES, MediaPart, MediaRef, Message, Pairs, Part, TextPart
from mmprompt.targets.json_values import plain

AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/mpeg": "mp3",
    "audio/flac": "flac",
    "audio/ogg": "ogg",
    "audio/mp4": "m4a",
    "audio/aac": "aac",
    "audio/webm": "webm",
}
"""What ``input_audio`` calls a media type."""

_TEXTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
_MEDIA = {form: modality for modality in MODALITIES for form in (f"{modality}_url", f"input_{modality}", modality)}
_KINDS = (*_TEXTS, *_MEDIA)
"""The types of content parts that are read; also the keys that hold their text or source."""

_MOST_FRAMES = 1_000_000
"""In one data URI: no policy is known here, and frames of three bytes each would fill the memory."""

_FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id")
_REPLY_ONLY = ("refusal", "audio", "function_call", "annotations")
"""Keys of a reply that we take where they are empty, as servers send them."""


def from_openai(messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Read messages of any OpenAI-like form: what ``to_openai`` writes, the Responses and the Hugging Face parts.

    Content is a string, a list of strings and parts, or None (but not all of what a user says). Data URIs (and the data
    of ``input_audio``) become ``MediaPart`` with the type that the bytes say; every other source becomes a ``MediaRef``
    as written, which nobody has read and no name was decided for. Keys beside a source go to ``options``, further keys
    of a part to ``extra``. A part that is empty text is left out, a ``refusal`` is text.

    ``from_openai(to_openai(messages)) == messages`` for target ``vllm`` where each ``MediaPart`` has no ``origin``,
    ``changes`` and ``findings`` and no ``form`` (or ``input_audio``), and each ``MediaRef`` is an http(s) URL without
    ``name`` and ``form``. ``openai`` sends all audio as ``input_audio`` and frames as images, and they come back so.

    Raises:
        TargetError: a message or part of no known form.
        SourceError: a data URI that cannot be decoded, or whose bytes are not the medium it stands for.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise TargetError(f"messages are a list of mappings, not {type(messages).__name__}", "give a list")
    return [_message(message, number) for number, message in enumerate(messages, 1)]


def _message(message: object, number: int) -> Message:
    if not isinstance(message, Mapping):
        raise TargetError(f"message {number} is {type(message).__name__}, not a mapping", "give role and content")
    role = message.get("role")
    if not isinstance(role, str) or not role:
        raise TargetError(f"message {number} has no role", "give a role such as user")
    for key in message:
        if key not in _FIELDS:
            _refuse_key(key, message[key], number)
    if role == "user" and message.get("content") is None and not message.get("tool_calls"):
        raise TargetError(f"message {number} has no content", "give text or parts, or take the message out")
    place = 0
    parts: list[Part] = []
    try:
        for part in _contents(message.get("content")):
            place += 1
            parts.append(_part(part))
        place = 0
        calls = plain(message.get("tool_calls") or [])
    except MMPromptError as error:
        text = f"message {number}, part {place}: {error.what}" if place else f"message {number}: {error.what}"
        raise type(error)(text, error.hint, error.where) from None
    if not isinstance(calls, list):
        raise TargetError(f"message {number}: tool_calls is no list", "give a list")
    return Message(role, parts, _optional(message, "name", number), calls, _optional(message, "tool_call_id", number))


def _refuse_key(key: object, value: object, number: int) -> None:
    """Raise for a message key that no field of a message holds, unless it says nothing."""
    if key in _REPLY_ONLY:
        if value:
            raise TargetError(f"message {number} has the key {shown(key)}, which a message cannot hold", "take it out")
        return
    if key == "type" and value == "message":  # what the Responses form calls it
        return
    raise TargetError(f"message {number} has the unknown key {shown(key)}", nearest(key, _FIELDS))


def _optional(message: Mapping[str, Any], key: str, number: int) -> str | None:
    value = message.get(key)
    if value is not None and not isinstance(value, str):
        raise TargetError(f"message {number}: {key} {shown(value)} is no string", "give a string")
    return value


def _contents(content: object) -> Iterator[object]:
    if content is None:
        return iter(())
    if isinstance(content, (str, Mapping)):
        return iter((content,))
    if isinstance(content, Sequence) and not isinstance(content, (bytes, bytearray)):
        return iter(content)
    raise TargetError(f"content of type {type(content).__name__}", "give text or a list of content parts")


def _part(part: object) -> Part:
    if isinstance(part, str):
        return TextPart(part)
    if not isinstance(part, Mapping):
        raise TargetError(f"a content part of type {type(part).__name__}", "give text or a mapping with a type")
    kind = _kind(part)
    if kind in _MEDIA:
        return _media_part(part, kind)
    key = _TEXTS[kind]
    text = part.get(key)
    if not isinstance(text, str):
        raise TargetError(f"a part of type {kind} whose {key} is of type {type(text).__name__}", "give a string")
    return TextPart(text, _rest(part, ("type", key)))


def _kind(part: Mapping[str, Any]) -> str:
    """Return the type of a content part; one without a type is what its only known key says."""
    kind = part.get("type")
    if kind is None:
        said = [key for key in part if key in _KINDS and part[key] is not None]
        if len(said) != 1:
            raise TargetError("a content part has no type", f"give one of {', '.join(_KINDS)}")
        return said[0]
    if kind not in _KINDS:
        raise TargetError(f"unknown content part type {shown(kind)}", nearest(kind, _KINDS))
    return str(kind)


def _media_part(part: Mapping[str, Any], kind: str) -> MediaPart | MediaRef:
    modality = _MEDIA[kind]
    keys = (kind, f"{modality}_url", modality, "url", "path", "base64")
    key = next((k for k in keys if part.get(k) is not None), None)
    if key is None:
        raise TargetError(f"a part of type {kind} that holds no {modality}", f"give its source under {shown(kind)}")
    source, extra = part[key], _rest(part, ("type", key))
    options: Pairs = ()
    declared = None
    form = "input_audio" if kind == "input_audio" else ""
    if isinstance(source, Mapping) and isinstance(source.get("url"), str):
        source, options = source["url"], _rest(source, ("url",))
    elif isinstance(source, Mapping) and isinstance(source.get("data"), str):
        form, declared = "input_audio", source.get("format")
        source, options = source["data"], _rest(source, ("data", "format"))
    if kind == "input_image":  # the Responses form has `detail` beside the source, the chat form inside it
        options += tuple([pair for pair in extra if pair[0] == "detail"])
        extra = tuple([pair for pair in extra if pair[0] != "detail"])
    what = classify(source)
    ref = MediaRef(modality, source, form if modality == "audio" else "", options, extra)
    if what.kind == "data" or (what.kind == "base64" and ref.form):
        return _read(ref, str(what.value), declared)
    return ref


def _read(ref: MediaRef, source: str, declared_format: object) -> MediaPart:
    """Return the part for a data URI, or for bare base64 whose format was declared."""
    declared, pieces, findings = _decoded(source)
    if isinstance(declared_format, str):
        name = declared_format.lower()
        declared = next((kind for kind, known in AUDIO_FORMATS.items() if known == name), f"audio/{name}")
    if ref.modality == "video" and (len(pieces) > 1 or declared == VIDEO_FRAMES):
        for frame in pieces:
            _judged(frame, "image")
        media_type, data, frames = VIDEO_FRAMES, b"", tuple(pieces)
    elif len(pieces) > 1:
        raise SourceError(f"a data URI of {ref.modality} with {len(pieces)} payloads", "only a video has frames")
    else:
        media_type, data, frames = _judged(pieces[0], ref.modality), pieces[0], ()
        if declared and not agree(normal_type(declared), media_type):
            findings += (f"declared {shown(declared)[1:-1]}, bytes are {media_type}",)
    return MediaPart(ref.modality, media_type, data, frames, ref.form, ref.options, ref.extra, findings=findings)


def _decoded(source: str) -> tuple[str, list[bytes], tuple[str, ...]]:
    """Return the declared type, the bytes of each payload, and what had to be mended."""
    uri = parse_data_uri(source) if source[:5].lower() == "data:" else DataURI("", True, source)
    count = uri.payload.count(",") + 1
    if uri.is_base64 and count > _MOST_FRAMES:
        raise SourceError(f"a data URI of {count} frames, more than {_MOST_FRAMES}", "give the video file itself")
    pieces: list[bytes] = []
    findings: dict[str, None] = {}
    for payload in uri.payload.split(",") if uri.is_base64 else (uri.payload,):
        data, mended = decode_payload(payload, uri.is_base64)
        pieces.append(data)
        findings.update(dict.fromkeys(mended))
    return uri.media_type, pieces, tuple(findings)


def _judged(data: bytes, modality: str) -> str:
    """Return the media type that the bytes say, which must be one of the modality."""
    kind = sniff(data)
    media_type = media_type_for(kind, modality) if kind else None
    if media_type is None:
        found = kind.name if kind else not_media(data).name
        raise SourceError(f"the bytes are no {modality}: {found}", "put the media itself there")
    return media_type


def _rest(mapping: Mapping[str, Any], taken: tuple[str, ...]) -> Pairs:
    """Return what else a part holds; columnar files fill the keys of other parts with nulls, which say nothing.

    Raises:
        TargetError: it holds a second text or source, or a value that JSON cannot hold.
    """
    rest = []
    for key, value in mapping.items():
        if key in taken:
            continue
        if key in _KINDS:
            if value is not None:
                raise TargetError(f"a content part holds {shown(key)} beside {shown(taken[-1])}", "make it two")
            continue
        rest.append((key, plain(value)))
    return tuple(rest)
