"""The messages of a row that cannot be sent, as far as they can be made, with the media that can be read."""

from __future__ import annotations

from typing import Any

from mmprompt.datasets.sample import Sample
from mmprompt.errors import MMPromptError
from mmprompt.icl.assembly import Assembled
from mmprompt.media.reader import MediaReader
from mmprompt.media.sources import in_short
from mmprompt.messages import MediaPart, MediaRef, Message, TextPart
from mmprompt.render.builder import FAULTS, RequestBuilder
from mmprompt.render.wire_request import WireRequest
from mmprompt.targets.part_writer import Payload
from mmprompt.tasks.media import in_own_folder
from mmprompt.tasks.task import Task


def unsent_requests(builder: RequestBuilder, sample: Sample) -> list[WireRequest]:
    """Return the requests of a row in OpenAI's form, whatever the target takes; none if its prompt cannot be made."""
    task, reader = builder.task, builder.media.reader
    try:
        if task.assembly is None:
            found: list[WireRequest] = [WireRequest(task.plain_messages(sample))]
        else:
            found = [one for made in builder.assembled(sample) for one in _by_label(task, made)]
    except FAULTS:
        return []
    return [
        one._replace(wire=[_message(message, reader) for message in in_own_folder(one.wire, sample)]) for one in found
    ]


def _by_label(task: Task, made: Assembled) -> list[WireRequest]:
    messages = task.messages_of(made)
    of_labels = messages if isinstance(messages, dict) else {None: messages}
    return [WireRequest(own, made.turn, label, made.dropped) for label, own in of_labels.items()]


def _message(message: Message, reader: MediaReader) -> dict[str, Any]:
    """Return a message whose media stand in it as far as they can be read, else by their names."""
    content: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            content.append({"type": "text", "text": part.text})
            continue
        named = {"type": part.modality, "name": part.origin if isinstance(part, MediaPart) else in_short(part.source)}
        try:
            read = reader.read(part) if isinstance(part, MediaRef) else part
        except MMPromptError:
            read = None
        content.append({"type": part.modality, "data": Payload("", read)} if isinstance(read, MediaPart) else named)
    return {"role": message.role, "content": content, **message.beside_content()}
