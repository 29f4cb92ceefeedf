"""Messages ⇄ the chat form of OpenAI, which vLLM and most servers speak.

``to_openai`` writes, ``from_openai`` (in ``openai_reading``) reads. ``OpenAIWriter`` can leave the base64 text of the
media to its caller, who may write it without a copy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from mmprompt.errors import TargetError
from mmprompt.messages import MediaPart, MediaRef, Message, TextPart, ask, checked
from mmprompt.targets.json_values import plain
from mmprompt.targets.limits import check_media, modality_limits
from mmprompt.targets.openai_reading import AUDIO_FORMATS, from_openai
from mmprompt.targets.part_writer import (
    ChatWriter,
    PayloadWriter,
    RefReader,
    Tally,
    Wire,
    WireValue,
    is_address,
    quoted,
    text_payload,
    url_of,
)

__all__ = ["OpenAIWriter", "from_openai", "text_payload", "to_openai"]


def to_openai(messages: Iterable[Message], target: str = "vllm", *, content: str = "auto") -> list[dict[str, Any]]:
    """Return messages as plain data for an OpenAI-compatible server.

    A message of one text part has a string as its content. A message without parts has ``""``, or ``None`` beside tool
    calls. Any other message has a list of content parts in order; ``content="parts"`` always gives a list. A
    ``MediaPart`` becomes a data URI of its real type. A ``MediaRef`` is sent by name if it has a ``name`` or is an
    http(s) URL.

    Raises:
        TargetError: an unknown target, media that has not been read, or something that the target does not take.
    """
    return OpenAIWriter(target, content=content).write(messages)


class OpenAIWriter(ChatWriter):
    """Writes messages for one target as ``to_openai`` does. For its arguments see ``ChatWriter``."""

    __slots__ = ("_forms",)
    wire: ClassVar[str] = "openai"

    def __init__(
        self,
        target: str,
        *,
        content: str = "auto",
        payload: PayloadWriter = text_payload,
        read: RefReader | None = None,
    ) -> None:
        super().__init__(target, content=content, payload=payload, read=read)
        self._forms = {modality: accepted.forms for modality, accepted in self._known.modalities.items()}

    def _message(self, message: Message, tally: Tally | None) -> Wire:
        """Return one message as plain data."""
        if type(message) is not Message:
            checked(message)
        role, parts, name, tool_calls, tool_call_id = message
        body: WireValue
        if self._auto and len(parts) == 1 and isinstance(parts[0], TextPart) and not parts[0].extra:
            body = parts[0].text
            if tally is not None:
                tally.add_text(body)
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
        """Return the content part of a medium that is sent by name."""
        modality, source, form, options, extra, url = ref
        if url is None or url is not source or ask(url, is_address):  # the reader may send another source as it is
            url = url_of(ref, self._known)
        forms = self._forms.get(modality) or modality_limits(self._known, modality).forms
        form = form if form in forms else forms[0]  # the template's form if the target has it
        if form == "input_audio":
            raise TargetError(
                f"input_audio carries bytes, and {quoted(url)} is a name",
                "give a file, or use audio_url if the target takes it",
            )
        holder: Wire = {"url": url}
        wire: Wire = {"type": form, form: self._with_options(holder, options) if options else holder}
        return self._with_extra(wire, extra) if extra else wire

    def _embedded(self, part: MediaPart) -> Wire:
        """Return the content part of a medium that is sent as bytes."""
        forms = check_media(part, self._known).forms
        form = part.form if part.form in forms else forms[0]
        if form == "input_audio":
            body: Wire = {"data": self._payload("", part), "format": _audio_format(part.media_type)}
        else:
            body = {"url": self._payload(f"data:{part.media_type};base64,", part)}
        wire: Wire = {"type": form, form: self._with_options(body, part.options) if part.options else body}
        return self._with_extra(wire, part.extra) if part.extra else wire


def _audio_format(media_type: str) -> str:
    """Return the ``format`` of ``input_audio`` for a media type: by default its subtype."""
    return AUDIO_FORMATS.get(media_type) or media_type.partition("/")[2]
