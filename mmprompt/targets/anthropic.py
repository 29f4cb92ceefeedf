"""Messages → the Messages API of Anthropic.

``AnthropicWriter`` can leave the base64 text of the media to its caller, who may write it without a copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from mmprompt.errors import TargetError, Where, shown
from mmprompt.messages import MediaPart, MediaRef, Message
from mmprompt.targets.limits import check_media, modality_limits
from mmprompt.targets.part_writer import Wire, WireValue, url_of
from mmprompt.targets.turn_writer import Call, Turn, TurnWriter

_ID = re.compile(r"[a-zA-Z0-9_-]+")


def to_anthropic(messages: Iterable[Message], target: str = "anthropic") -> dict[str, Any]:
    """Return messages as plain data for Anthropic's Messages API: ``messages``, and ``system`` if there is one.

    ``client.messages.create(model=…, max_tokens=…, **to_anthropic(messages))`` sends them. The content of one text is a
    string, any other a list of blocks in order. A ``MediaPart`` becomes a base64 source of its real type, an https URL
    a url source, a video of frames one image for each frame. Tool calls become ``tool_use`` blocks. Messages of the
    role ``tool`` become ``tool_result`` blocks of the user.

    Neighbours of one role become one message. System messages before all others become ``system``. A later one keeps
    its place, which the API's newer models allow after a user message, last or before an assistant message. Anywhere
    else it is an error, since moving it would change which messages it applies to.

    Raises:
        TargetError: an unknown target, media that has not been read, or something that the target does not take.
    """
    return AnthropicWriter(target).write(messages)


class AnthropicWriter(TurnWriter):
    """Writes messages for one target as ``to_anthropic`` does. For its arguments see ``PartWriter``."""

    __slots__ = ()
    wire: ClassVar[str] = "anthropic"

    def write(self, messages: Iterable[Message]) -> Wire:
        """Return the messages as plain data."""
        system, turns = self._turns(messages)
        out: list[Wire] = []
        for place, turn in enumerate(turns):
            last = place == len(turns) - 1
            if turn.role == "system":
                self._check_place(turn, turns[place - 1].role, "" if last else turns[place + 1].role)
            if turn.parts or not (last and turn.role == "assistant"):  # an empty last message asks for the reply
                self._check_filled(turn)
            out.append({"role": turn.role, "content": _text_or_blocks(turn.parts)})
        if turns[-1].role == "assistant":
            self._check_end(turns[-1])
        return {"messages": out, "system": _text_or_blocks(system)} if system else {"messages": out}

    def _check_place(self, turn: Turn, before: str, after: str) -> None:
        """Refuse a later system message at a place where the API takes none."""
        if before != "user" or after not in ("", "assistant"):
            place = "after a user message, and only last or before an assistant one"
            what = f"{self._known.name} takes a later system message only {place}"
            raise TargetError(what, "put it first, or give it the role user", Where(message=turn.number))

    def _check_end(self, turn: Turn) -> None:
        """Refuse white space at the end of a reply that the model has to continue."""
        text = turn.parts[-1].get("text", "") if turn.parts else ""
        if isinstance(text, str) and text != text.rstrip():
            what = f"the assistant's last message ends in white space, which {self._known.name} refuses"
            raise TargetError(what, "strip it in the template")

    def _refuse_blank(self, number: int) -> None:
        """Refuse a text of white space alone."""
        what = f"{self._known.name} takes no text of white space alone"
        raise TargetError(what, "remove it, or join it to a text beside it", Where(part=number))

    def _named(self, ref: MediaRef) -> Wire:
        """Return the block of a medium that is sent by URL."""
        modality_limits(self._known, ref.modality)
        source = self._with_options({"type": "url", "url": url_of(ref, self._known)}, ref.options)
        return self._with_extra({"type": ref.modality, "source": source}, ref.extra)

    def _embedded(self, part: MediaPart) -> Wire:
        """Return the block of a medium that is sent as bytes."""
        check_media(part, self._known)
        source: Wire = {"type": "base64", "media_type": part.media_type, "data": self._payload("", part)}
        source = self._with_options(source, part.options)
        return self._with_extra({"type": part.modality, "source": source}, part.extra)

    def _call(self, call: Call) -> Wire:
        """Return a ``tool_use`` block."""
        return {"type": "tool_use", "id": _checked_id(call.id), "name": call.name, "input": call.arguments}

    def _result(self, message: Message, parts: list[Wire], functions: Mapping[str, str]) -> Wire:  # noqa: ARG002  # the call's id is enough
        """Return a ``tool_result`` block."""
        block: Wire = {"type": "tool_result", "tool_use_id": _checked_id(message.tool_call_id)}
        if parts:
            block["content"] = _text_or_blocks(parts)
        return block


def _text_or_blocks(parts: list[Wire]) -> WireValue:
    """Return a single text as a string, no parts as ``""``."""
    if not parts:
        return ""
    return parts[0]["text"] if len(parts) == 1 and parts[0].keys() == {"type", "text"} else parts


def _checked_id(call_id: str | None) -> str:
    if call_id is None or not _ID.fullmatch(call_id):
        what = "no id" if call_id is None else f"the id {shown(call_id)}"
        raise TargetError(f"a tool call or result has {what}", "use ids of letters, digits, _ and -")
    return call_id
