"""Messages in the form of the target ``hf`` with their media decoded, as a processor takes them."""

from __future__ import annotations

from typing import Any

from mmprompt.errors import TargetError
from mmprompt.messages import MODALITIES
from mmprompt.targets.hf_media import HFDecoder
from mmprompt.targets.part_writer import Payload, Wire, WireValue


def decoded_messages(messages: list[Wire], media: HFDecoder) -> list[dict[str, Any]]:
    """Return messages with an object in place of each medium; other values are copied.

    Raises:
        TargetError: a medium was named and not read; a local model fetches nothing.
        MediaError: a medium cannot be decoded.
    """
    return [{key: _decoded(value, media) for key, value in message.items()} for message in messages]


def text_messages(messages: list[Wire]) -> list[dict[str, Any]]:
    """Return messages whose content is a string, as tokenizers take them.

    Raises:
        TargetError: a message holds a medium.
    """
    return [{**message, "content": _text(message["content"])} for message in messages]


def _decoded(value: WireValue, media: HFDecoder) -> Any:
    if isinstance(value, Payload):
        return media.decode(value.part)
    if isinstance(value, dict):
        for modality in MODALITIES:
            if value.get("type") == modality and isinstance(value.get(modality), str):
                raise TargetError(f"a local model fetches no {modality}", "leave out media: keep, so that it is read")
        return {key: _decoded(item, media) for key, item in value.items()}
    if isinstance(value, list):
        return [_decoded(item, media) for item in value]
    return value


def _text(content: WireValue) -> str:
    if not isinstance(content, list):
        return "" if content is None else str(content)
    texts = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(part, dict) or kind != "text":
            raise TargetError(f"the model takes no {kind}", "use the folder of a model that does")
        texts.append(str(part["text"]))
    return "".join(texts)
