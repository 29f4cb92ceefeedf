"""What a line of rendered output holds, for each wire form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mmprompt.errors import TargetError
from mmprompt.messages import Message
from mmprompt.targets.limits import limits
from mmprompt.targets.part_writer import Payload, Read


def writer_for(target: str, payload: Payload, read: Read) -> Callable[[Iterable[Message]], Any]:
    """Return what writes messages for a target: a list of messages, or a mapping of the request's keys.

    Raises:
        TargetError: an unknown target, or one whose form is no JSON.
    """
    wire = limits(target).wire
    if wire == "openai":
        from mmprompt.targets.openai import OpenAIWriter  # noqa: PLC0415  # one of these is needed

        return OpenAIWriter(target, payload=payload, read=read).write
    if wire == "anthropic":
        from mmprompt.targets.anthropic import AnthropicWriter  # noqa: PLC0415  # likewise

        return AnthropicWriter(target, payload=payload, read=read).write
    if wire == "gemini":
        from mmprompt.targets.gemini import GeminiWriter  # noqa: PLC0415  # likewise

        return GeminiWriter(target, payload=payload, read=read).write
    if wire == "hf":
        from mmprompt.targets.hf import HFWriter  # noqa: PLC0415  # likewise

        return HFWriter(target, payload=payload, read=read).write
    raise TargetError(f"the target {target} is not rendered to lines", f"use to_{wire} from Python")


def content_of(wire: Any) -> Any:
    """Return the content parts of the one message that was written."""
    if isinstance(wire, list):
        return wire[0]["content"]
    return wire["messages"][0]["content"] if "messages" in wire else wire["contents"][0]["parts"]


def keyed(wire: Any) -> dict[str, Any]:
    """Return a request as its keys: those of the wire form, or ``messages`` where it is a list of them."""
    return wire if isinstance(wire, dict) else {"messages": wire}


def labelled(wires: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a record from the requests of each label: under each key a mapping from label to value."""
    by_label = {label: keyed(wire) for label, wire in wires.items()}
    keys = dict.fromkeys(key for request in by_label.values() for key in request)
    return {key: {label: request[key] for label, request in by_label.items() if key in request} for key in keys}


def custom_id(sample_id: object) -> str:
    """Return the id of a sample as batch files have it: text, and JSON of what is none."""
    return sample_id if isinstance(sample_id, str) else json.dumps(sample_id, ensure_ascii=False)


def batch_line(sample_id: object, turn: int | None, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line of OpenAI's batch files.

    Its ``custom_id`` is that of the sample; that of a turn ends in ``#`` and its number.
    """
    name = custom_id(sample_id)
    return {
        "custom_id": name if turn is None else f"{name}#{turn}",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": body,
    }
