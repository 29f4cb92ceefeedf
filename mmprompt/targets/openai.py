"""Messages ⇄ the chat form of OpenAI, which vLLM and most servers speak.

``to_openai`` writes, ``from_openai`` (in ``openai_reading``) reads. ``OpenAIWriter`` leaves the payloads to its
caller, for those who write bytes without copying them.
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
from mmprompt.targets.limits import Limits, check_count, check_media, limits, taken_of
from mmprompt.targets.openai_reading import AUDIO_FORMATS, from_openai

__all__ = ["OpenAIWriter", "from_openai", "text_payload", "to_openai"]

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
    return OpenAIWriter(target, content=content).write(messages)


def text_payload(prefix: str, part: MediaPart) -> str:
    """Return ``prefix`` and the part's bytes (or frames, joined by commas) as base64 text."""
    if part.frames:
        return prefix + ",".join([encode(frame).decode("ascii") for frame in part.frames])
    return prefix + encode(part.data).decode("ascii")


class OpenAIWriter:
    """Writes messages for one target as ``to_openai`` does; made once, called for each sample, safe to share.

    ``payload(prefix, part)`` gives what stands for a base64 text, whose ``prefix`` is ``data:image/jpeg;base64,`` or
    nothing. ``read``, such as ``MediaReader.read``, is asked for each medium that has only been named; its errors pass
    as they are.

    Raises:
        TargetError: an unknown target or content form.
    """

    __slots__ = ("_auto", "_forms", "_known", "_payload", "_read")

    def __init__(
        self, target: str, *, content: str = "auto", payload: Payload = text_payload, read: Read | None = None
    ) -> None:
        known = limits(target)
        if known.wire != "openai":
            raise TargetError(f"target {target} has another wire form", f"use to_{known.wire}")
        if content not in ("auto", "parts"):
            raise TargetError(f"there is no content form {shown(content)}", nearest(content, ("auto", "parts")))
        self._known = known
        self._forms = {modality: taken.forms for modality, taken in known.modalities.items()}
        self._auto = content == "auto"
        self._payload = payload
        self._read = read

    def write(self, messages: Iterable[Message]) -> list[Wire]:
        """Return the messages as plain data.

        Raises:
            TargetError: media that has not been read, or what the target does not take.
        """
        out: list[Wire] = []
        for message in messages:
            if type(message) is not Message:
                kind = type(message).__name__
                raise TargetError(f"a message is {kind}", "give a list of Messages; from_openai(…) makes them of dicts")
            role, parts, name, tool_calls, tool_call_id = message
            body: object
            if self._auto and len(parts) == 1 and isinstance(parts[0], TextPart) and not parts[0].extra:
                body = parts[0].text
            elif parts or not self._auto:
                body = self._content(parts, len(out) + 1)
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
        if self._known.counted:
            _check_counts(out, self._known)
        return out

    def _content(self, parts: tuple[Part, ...], message: int) -> list[Wire]:
        out: list[Wire] = []
        read = self._read
        for place, given in enumerate(parts, 1):
            if type(given) is TextPart and not given.extra:
                out.append({"type": "text", "text": given.text})
                continue
            part = read(given) if read is not None and type(given) is MediaRef and given.name is None else given
            try:
                if isinstance(part, TextPart):
                    out.append(_with({"type": "text", "text": part.text}, part.extra))
                elif isinstance(part, MediaRef):
                    out.append(self._named(part))
                elif part.frames and part.modality not in self._forms:
                    out.extend([self._embedded(frame) for frame in _frames(part)])
                else:
                    out.append(self._embedded(part))
            except MMPromptError as error:
                raise type(error)(f"message {message}, part {place}: {error.what}", error.mend, error.where) from None
        return out

    def _named(self, ref: MediaRef) -> Wire:
        """Return the content part of media that goes by name."""
        modality, source, form, options, extra, url = ref
        if url is None:
            kind, value = classify(source)
            if kind not in ("url", "scheme"):
                raise TargetError(f"{modality} {_quoted(source)} has not been read", _READ)
            url = str(value)
            _check_scheme(url, self._known)
        elif url is not source:
            _check_scheme(url, self._known)
        forms = self._forms.get(modality) or taken_of(self._known, modality).forms
        form = form if form in forms else forms[0]  # that of the template where the target has it
        if form == "input_audio":
            raise TargetError(
                f"input_audio carries bytes, and {_quoted(url)} is a name",
                "give a file, or use audio_url where the target takes it",
            )
        holder: Wire = {"url": url}
        wire = {"type": form, form: _with(holder, options) if options else holder}
        return _with(wire, extra) if extra else wire

    def _embedded(self, part: MediaPart) -> Wire:
        """Return the content part of media that was read."""
        forms = check_media(part, self._known).forms
        form = part.form if part.form in forms else forms[0]
        if form == "input_audio":
            body: Wire = {"data": self._payload("", part), "format": _audio_format(part.media_type)}
        else:
            body = {"url": self._payload(f"data:{part.media_type};base64,", part)}
        wire = {"type": form, form: _with(body, part.options) if part.options else body}
        return _with(wire, part.extra) if part.extra else wire


def _check_scheme(url: str, known: Limits) -> None:
    scheme = url.partition(":")[0].lower()
    if scheme not in known.schemes:
        what = f"{_quoted(url)} has the scheme {scheme}" if "://" in url[:40] else f"{_quoted(url)} is no URL"
        names = ", ".join(sorted(known.schemes))
        raise TargetError(
            f"{what}, and {known.name} takes names with {names}", "give an http(s) URL, or a file under the media root"
        )


def _audio_format(media_type: str) -> str:
    """Return what ``input_audio`` calls a media type; a type that a user's target added goes by its subtype."""
    return AUDIO_FORMATS.get(media_type) or media_type.partition("/")[2]


def _quoted(source: object) -> str:
    return shown(in_short(source))


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
