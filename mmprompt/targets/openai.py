"""Messages ⇄ the chat form of OpenAI, which vLLM and most servers speak.

``to_openai`` writes, ``from_openai`` (in ``openai_reading``) reads. ``OpenAIWriter`` leaves the payloads to its
caller, for those who write bytes without copying them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from mmprompt.errors import MMPromptError, TargetError, nearest, shown
from mmprompt.messages import MediaPart, MediaRef, Message, TextPart, checked
from mmprompt.targets.json_values import plain
from mmprompt.targets.limits import check_media, taken_of
from mmprompt.targets.openai_reading import AUDIO_FORMATS, from_openai
from mmprompt.targets.part_writer import PartWriter, Payload, Read, Tally, Wire, quoted, text_payload, url_of

__all__ = ["OpenAIWriter", "from_openai", "text_payload", "to_openai"]


def to_openai(messages: Iterable[Message], target: str = "vllm", *, content: str = "auto") -> list[Wire]:
    """Return messages as plain data for an OpenAI-compatible server.

    One text part alone becomes a string, no part ``""`` (``None`` beside tool calls), all else a list of content parts
    in order; ``content="parts"`` gives a list always. Media that was read becomes a data URI of its real type; media
    that was only named is sent as a name where the reader decided so or where it is an http(s) URL.

    Raises:
        TargetError: an unknown target, media that has not been read, or what the target does not take.
    """
    return OpenAIWriter(target, content=content).write(messages)


class OpenAIWriter(PartWriter):
    """Writes messages for one target as ``to_openai`` does; made as a ``PartWriter``, with a ``content`` form.

    Raises:
        TargetError: also for an unknown content form.
    """

    __slots__ = ("_auto", "_forms")
    wire: ClassVar[str] = "openai"
    text_head: ClassVar[Wire] = {"type": "text"}

    def __init__(
        self, target: str, *, content: str = "auto", payload: Payload = text_payload, read: Read | None = None
    ) -> None:
        super().__init__(target, payload=payload, read=read)
        if content not in ("auto", "parts"):
            raise TargetError(f"there is no content form {shown(content)}", nearest(content, ("auto", "parts")))
        self._forms = {modality: taken.forms for modality, taken in self._known.modalities.items()}
        self._auto = content == "auto"

    def write(self, messages: Iterable[Message]) -> list[Wire]:
        """Return the messages as plain data.

        Raises:
            TargetError: media that has not been read, or what the target does not take.
        """
        out: list[Wire] = []
        tally = Tally() if self._tallied else None
        for message in messages:
            try:
                out.append(self._message(message, tally))
            except MMPromptError as error:
                raise error.located(message=len(out) + 1) from None
        if tally is not None:
            tally.check(self._known)
        return out

    def _message(self, message: Message, tally: Tally | None) -> Wire:
        """Return one message as plain data."""
        if type(message) is not Message:
            checked(message)
        role, parts, name, tool_calls, tool_call_id = message
        body: object
        if self._auto and len(parts) == 1 and isinstance(parts[0], TextPart) and not parts[0].extra:
            body = parts[0].text
            if tally is not None:
                tally.add_text(parts[0].text)
        elif parts or not self._auto:
            body = self._content(parts, tally)
        else:
            body = None if tool_calls else ""
        wire: Wire = {"role": role, "content": body}
        if name is not None:
            wire["name"] = name
        if tool_calls:
            wire["tool_calls"] = [plain(call) for call in tool_calls]
        if tool_call_id is not None:
            wire["tool_call_id"] = tool_call_id
        return wire

    def _named(self, ref: MediaRef) -> Wire:
        """Return the content part of media that goes by name."""
        modality, source, form, options, extra, url = ref
        if url is None or url is not source:  # else the reader's decision: a URL, or kept as the sample has it
            url = url_of(ref, self._known)
        forms = self._forms.get(modality) or taken_of(self._known, modality).forms
        form = form if form in forms else forms[0]  # that of the template where the target has it
        if form == "input_audio":
            raise TargetError(
                f"input_audio carries bytes, and {quoted(url)} is a name",
                "give a file, or use audio_url where the target takes it",
            )
        holder: Wire = {"url": url}
        wire = {"type": form, form: self._with_options(holder, options) if options else holder}
        return self._with_extra(wire, extra) if extra else wire

    def _embedded(self, part: MediaPart) -> Wire:
        """Return the content part of media that was read."""
        forms = check_media(part, self._known).forms
        form = part.form if part.form in forms else forms[0]
        if form == "input_audio":
            body: Wire = {"data": self._payload("", part), "format": _audio_format(part.media_type)}
        else:
            body = {"url": self._payload(f"data:{part.media_type};base64,", part)}
        wire = {"type": form, form: self._with_options(body, part.options) if part.options else body}
        return self._with_extra(wire, part.extra) if part.extra else wire


def _audio_format(media_type: str) -> str:
    """Return what ``input_audio`` calls a media type; a type that a user's target added goes by its subtype."""
    return AUDIO_FORMATS.get(media_type) or media_type.partition("/")[2]
