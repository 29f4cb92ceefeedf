"""Messages ⇄ the chat form of OpenAI, which vLLM and most servers speak.

``to_openai`` writes, ``from_openai`` (in ``openai_reading``) reads. ``wire_messages`` is the writer with the payloads
left to its caller, for those who write bytes without copying them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mmprompt.errors import MMPromptError, TargetError, nearest, shown
from mmprompt.media.base64_text import encode
from mmprompt.media.classify import classify, in_short
from mmprompt.media.media_types import media_type_for, sniff
from mmprompt.parts import MediaPart, MediaRef, Message, Pairs, Part, TextPart
from mmprompt.targets.json_values import plain
from mmprompt.targets.limits import Limits, Taken, check_count, check_media, limits, taken_of
from mmprompt.targets.openai_reading import AUDIO_FORMATS, from_openai

__all__ = ["from_openai", "text_payload", "to_openai", "wire_messages"]

Wire = dict[str, Any]
Payload = Callable[[str, MediaPart], object]
Read = Callable[[MediaRef], "MediaPart | MediaRef"]

_READ = "let it be read first: read_messages(...)"


def to_openai(messages: Iterable[Message], target: str = "vllm", *, content: str = "auto") -> list[Wire]:
    """Return messages as plain data for an OpenAI-compatible server.

    One text part alone becomes a string, no part ``""`` (``None`` beside tool calls), all else a list of content parts
    in order; ``content="parts"`` gives a list always. Media that was read becomes a data URI of its real type; media
    that was only named is sent as a name where the reader decided so or where it is an http(s) URL.

    Raises:
        TargetError: an unknown target, media that has not been read, or what the target does not take.
    """
    return wire_messages(messages, target, content, text_payload)


def text_payload(prefix: str, part: MediaPart) -> str:
    """Return ``prefix`` and the part's bytes (or frames, joined by commas) as base64 text."""
    if part.frames:
        return prefix + ",".join([encode(frame).decode("ascii") for frame in part.frames])
    return prefix + encode(part.data).decode("ascii")


def wire_messages(
    messages: Iterable[Message], target: str, content: str, payload: Payload, read: Read | None = None
) -> list[Wire]:
    """Return messages like ``to_openai``, with ``payload(prefix, part)`` standing for each base64 text.

    ``prefix`` is what precedes the base64 in the string: ``data:image/jpeg;base64,`` or nothing. ``read``, such as
    ``MediaReader.read``, is asked first for each medium that has only been named; its errors pass as they are.
    """
    known = limits(target)
    if known.wire != "openai":
        raise TargetError(f"target {target} has another wire form", f"use to_{known.wire}")
    if content not in ("auto", "parts"):
        raise TargetError(f"there is no content form {shown(content)}", nearest(content, ("auto", "parts")))
    auto = content == "auto"
    out: list[Wire] = []
    for role, parts, name, tool_calls, tool_call_id in messages:
        body: object
        if auto and len(parts) == 1 and isinstance(parts[0], TextPart) and not parts[0].extra:
            body = parts[0].text
        elif parts or not auto:
            body = _content(parts, known, payload, read, len(out) + 1)
        else:
            body = None if tool_calls else ""
        wire: Wire = {"role": role, "content": body}
        if name is not None:
            wire["name"] = name
        if tool_calls:
            wire["tool_calls"] = [plain(call) for call in tool_calls]
        if tool_call_id is not None:
            wire["tool_call_id"] = tool_call_id
        out.append(wire)
    if known.counted:
        _check_counts(out, known)
    return out


def _content(parts: tuple[Part, ...], known: Limits, payload: Payload, read: Read | None, message: int) -> list[Wire]:
    out: list[Wire] = []
    for place, given in enumerate(parts, 1):
        part = read(given) if read is not None and type(given) is MediaRef and given.name is None else given
        try:
            if isinstance(part, TextPart):
                wire: Wire = {"type": "text", "text": part.text}
                out.append(_with(wire, part.extra) if part.extra else wire)
            elif isinstance(part, MediaRef):
                out.append(_named(part, known))
            elif part.frames and part.modality not in known.modalities:
                out.extend([_read(frame, known, payload) for frame in _frames(part)])
            else:
                out.append(_read(part, known, payload))
        except MMPromptError as error:
            raise type(error)(f"message {message}, part {place}: {error.what}", error.mend, error.where) from None
    return out


def _named(ref: MediaRef, known: Limits) -> Wire:
    """Return the content part of media that goes by name."""
    url, source = ref.name, ref.source
    if url is None:
        kind, value = classify(source)
        if kind not in ("url", "scheme"):
            raise TargetError(f"{ref.modality} {_quoted(source)} has not been read", _READ)
        url = str(value)
    if ref.name is None or not isinstance(source, str) or url != source:
        _check_scheme(url, known)
    form = _form(ref, taken_of(known, ref.modality))
    if form == "input_audio":
        raise TargetError(
            f"input_audio carries bytes, and {_quoted(url)} is a name",
            "let it be read (a URL: --fetch), or use audio_url where the target takes it",
        )
    holder: Wire = {"url": url}
    wire = {"type": form, form: _with(holder, ref.options) if ref.options else holder}
    return _with(wire, ref.extra) if ref.extra else wire


def _check_scheme(url: str, known: Limits) -> None:
    scheme = url.partition(":")[0].lower()
    if scheme not in known.schemes:
        what = f"{_quoted(url)} has the scheme {scheme}" if "://" in url[:40] else f"{_quoted(url)} is no URL"
        names = ", ".join(sorted(known.schemes))
        raise TargetError(
            f"{what}, and {known.name} takes names with {names}", "give an http(s) URL, or a file under the media root"
        )


def _read(part: MediaPart, known: Limits, payload: Payload) -> Wire:
    """Return the content part of media that was read."""
    form = _form(part, check_media(part, known))
    if form == "input_audio":
        audio: Wire = {"data": payload("", part), "format": _audio_format(part.media_type)}
    else:
        audio = {"url": payload(f"data:{part.media_type};base64,", part)}
    wire = {"type": form, form: _with(audio, part.options) if part.options else audio}
    return _with(wire, part.extra) if part.extra else wire


def _audio_format(media_type: str) -> str:
    """Return what ``input_audio`` calls a media type; a type that a user's target added goes by its subtype."""
    return AUDIO_FORMATS.get(media_type) or media_type.partition("/")[2]


def _quoted(source: object) -> str:
    return shown(in_short(source))


def _form(part: MediaRef | MediaPart, taken: Taken) -> str:
    """Return the content part type: the one the template asked for where the target has it, else the target's own."""
    return part.form if part.form in taken.forms else taken.forms[0]


def _frames(video: MediaPart) -> list[MediaPart]:
    """Return the frames of a video as images, for a target that takes no video."""
    images = []
    for frame in video.frames:
        kind = sniff(frame)
        media_type = kind and media_type_for(kind, "image")
        images.append(MediaPart("image", media_type or "of unknown type", frame, (), "", video.options, video.extra))
    return images


def _with(wire: Wire, pairs: Pairs) -> Wire:
    """Add further keys to a part that is being made; none may take the place of what the part is."""
    for key, value in pairs:
        if key in wire:
            raise TargetError(f"the key {shown(key)} is given twice in a content part", "leave it out of the template")
        wire[key] = plain(value)
    return wire


def _check_counts(messages: list[Wire], known: Limits) -> None:
    """Hold the number of parts in a request against the target's."""
    modality_of = {form: modality for modality, taken in known.modalities.items() for form in taken.forms}
    counts: dict[str, int] = {}
    for message in messages:
        if isinstance(message["content"], list):
            for part in message["content"]:
                modality = modality_of.get(part["type"])
                if modality is not None:
                    counts[modality] = counts.get(modality, 0) + 1
    for modality, count in counts.items():
        check_count(modality, count, known)
