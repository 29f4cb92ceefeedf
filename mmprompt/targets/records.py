"""What a line of rendered output holds, for each wire form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Union

from mmprompt.errors import TargetError
from mmprompt.targets.limits import limits
from mmprompt.targets.part_writer import PartWriter, PayloadWriter, RefReader, Wire

Written = Union[list[Wire], Wire]
"""Written messages: a list of them (``openai``, ``hf``), or the keys of a request (``anthropic``, ``gemini``)."""


def writer_for(target: str, payload: PayloadWriter, read: RefReader) -> PartWriter:
    """Return the writer of a target's wire form; its ``write`` returns ``Written``.

    Raises:
        TargetError: an unknown target, or one whose form cannot be written as JSON.
    """
    wire = limits(target).wire
    if wire == "openai":
        from mmprompt.targets.openai import OpenAIWriter  # noqa: PLC0415  # only one of these is needed

        return OpenAIWriter(target, payload=payload, read=read)
    if wire == "anthropic":
        from mmprompt.targets.anthropic import AnthropicWriter  # noqa: PLC0415  # only one of these is needed

        return AnthropicWriter(target, payload=payload, read=read)
    if wire == "gemini":
        from mmprompt.targets.gemini import GeminiWriter  # noqa: PLC0415  # only one of these is needed

        return GeminiWriter(target, payload=payload, read=read)
    if wire == "hf":
        from mmprompt.targets.hf import HFWriter  # noqa: PLC0415  # only one of these is needed

        return HFWriter(target, payload=payload, read=read)
    raise TargetError(f"the target {target} is not rendered to lines", f"use to_{wire} from Python")


def content_of(wire: Any) -> Any:
    """Return the content of the first message that was written."""
    if isinstance(wire, list):
        return wire[0]["content"]
    return wire["messages"][0]["content"] if "messages" in wire else wire["contents"][0]["parts"]


def keyed(wire: Written) -> Wire:
    """Return written messages as keys of a request. A list of messages becomes the key ``messages``."""
    return wire if isinstance(wire, dict) else {"messages": wire}


def labelled(wires: Mapping[str, Written]) -> Wire:
    """Return the requests of several labels as one record: under each key a mapping from label to value."""
    by_label = {label: keyed(wire) for label, wire in wires.items()}
    keys = dict.fromkeys(key for request in by_label.values() for key in request)
    return {key: {label: request[key] for label, request in by_label.items() if key in request} for key in keys}


def custom_id(sample_id: object) -> str:
    """Return the batch ``custom_id``: the id if it is a string, otherwise its JSON text."""
    return sample_id if isinstance(sample_id, str) else json.dumps(sample_id, ensure_ascii=False)


def batch_line(sample_id: object, turn: int | None, body: Wire) -> Wire:
    """Return a line of OpenAI's batch files. The ``custom_id`` of a turn ends in ``#`` and the number of the turn."""
    name = custom_id(sample_id)
    return {
        "custom_id": name if turn is None else f"{name}#{turn}",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": body,
    }
