"""Messages → the API of Gemini.

``GeminiWriter`` can leave the base64 text of the media to its caller, who may write it without a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from mmprompt.errors import TargetError, Where
from mmprompt.media.media_types import suffix_type
from mmprompt.messages import MediaPart, MediaRef, Message, ask
from mmprompt.targets.limits import check_media, modality_limits
from mmprompt.targets.part_writer import Wire, url_of
from mmprompt.targets.turn_writer import Call, TurnWriter

_ROLES = {"user": "user", "assistant": "model"}
_TYPES = {"audio/mpeg": "audio/mp3", "video/quicktime": "video/mov", "video/x-msvideo": "video/avi"}
"""Media types for which the API has its own names."""


def to_gemini(messages: Iterable[Message], target: str = "gemini") -> dict[str, Any]:
    """Return messages as plain data for Gemini: ``contents``, and ``system_instruction`` if there is one.

    The keys are those of the REST API in snake case, which the SDK takes too. A ``MediaPart`` becomes ``inline_data``
    of its real type, a video of frames one image for each frame. An https or gs URL becomes ``file_data``, with the
    type that its suffix says or that stands beside it as ``mime_type``. Tool calls become ``function_call`` parts.
    Messages of the role ``tool`` become ``function_response`` parts of the user, with their text as ``output``.

    Neighbours of one role become one content. System messages before all others become ``system_instruction``. A later
    one is an error, since the API has no place for it.

    Raises:
        TargetError: an unknown target, media that has not been read, or something that the target does not take.
    """
    return GeminiWriter(target).write(messages)


class GeminiWriter(TurnWriter):
    """Writes messages for one target as ``to_gemini`` does. For its arguments see ``PartWriter``."""

    __slots__ = ()
    wire: ClassVar[str] = "gemini"
    typed_text: ClassVar[bool] = False

    def write(self, messages: Iterable[Message]) -> Wire:
        """Return the messages as plain data."""
        system, turns = self._turns(messages)
        contents: list[Wire] = []
        for turn in turns:
            if turn.role == "system":
                what = f"{self._known.name} takes system messages before all others only"
                raise TargetError(what, "put it first, or give it the role user", Where(message=turn.number))
            self._check_filled(turn)
            contents.append({"role": _ROLES[turn.role], "parts": turn.parts})
        return {"contents": contents, "system_instruction": {"parts": system}} if system else {"contents": contents}

    def _named(self, ref: MediaRef) -> Wire:
        """Return the part of a medium that is sent by URL."""
        modality_limits(self._known, ref.modality)
        url = url_of(ref, self._known)
        file = self._with_options({"file_uri": url}, ref.options)
        kind = ask(url, _suffix_type)
        if "mime_type" not in file and kind is not None and kind.partition("/")[0] == ref.modality:
            file["mime_type"] = _TYPES.get(kind, kind)
        return self._with_extra({"file_data": file}, ref.extra)

    def _embedded(self, part: MediaPart) -> Wire:
        """Return the part of a medium that is sent as bytes. Its type is what the bytes say."""
        check_media(part, self._known)
        blob: Wire = {"mime_type": _TYPES.get(part.media_type, part.media_type), "data": self._payload("", part)}
        options = tuple([pair for pair in part.options if pair[0] != "mime_type"])
        return self._with_extra({"inline_data": self._with_options(blob, options)}, part.extra)

    def _call(self, call: Call) -> Wire:
        """Return a ``function_call`` part."""
        function: Wire = {"name": call.name, "args": call.arguments}
        return {"function_call": function if call.id is None else {"id": call.id, **function}}

    def _result(self, message: Message, parts: list[Wire], functions: Mapping[str, str]) -> Wire:
        """Return a ``function_response`` part. The function's name is the message's, or that of the call."""
        call_id = message.tool_call_id
        name = message.name or functions.get(call_id or "")
        if not name:
            raise TargetError("a tool result names no function", "give it a name, or the tool_call_id of a call")
        if any(part.keys() != {"text"} for part in parts):
            raise TargetError(f"{self._known.name} takes the result of a function as text", "remove its media")
        texts = [part["text"] for part in parts]
        response: Wire = {"name": name, "response": {"output": texts[0] if len(texts) == 1 else texts or ""}}
        return {"function_response": response if call_id is None else {"id": call_id, **response}}


def _suffix_type(url: str) -> str | None:
    """Return the media type that the suffix of an address says."""
    return suffix_type(url.partition("?")[0].partition("#")[0])
