"""inspect-ai's model providers: what the stock ones would lose, and ours, ``mmprompt``, which sends every part."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from inspect_ai.model import ChatMessage, Content, ContentData, modelapi

from mmprompt.errors import TargetError, shown
from mmprompt.plugins.inspect_ai_messages import OURS, wire_of

_ALL = ("image", "audio", "video")
_IMAGE = dict.fromkeys(("anthropic", "azureai", "bedrock", "grok", "groq", "mistral"), ("image",))
_NONE: dict[str, tuple[str, ...]] = dict.fromkeys(("hf", "nnterp", "transformer_lens"), ())
CARRIED = {"google": _ALL, "mockllm": _ALL, "none": _ALL, **_IMAGE, **_NONE}
"""The media that these providers send, as their sources say (0.3.285)."""

OPENAI_LIKE = ("image", "audio")
"""The media that the other providers send, all of which write OpenAI's form."""

_SENT = {"type", "detail", "format"}


def check_loss(messages: Iterable[ChatMessage], provider_name: str) -> None:
    """Refuse messages of which a provider would refuse, drop or change something.

    Raises:
        TargetError: the first such message and part, by name.
    """
    if provider_name == OURS:
        return
    for number, message in enumerate(messages, 1):
        place, lost = _loss(message, CARRIED.get(provider_name, OPENAI_LIKE))
        if lost:
            where = f"message {number}, part {place}" if place else f"message {number}"
            raise TargetError(
                f"{where}: the model provider {provider_name} {lost}", f"use --model {OURS}/SERVICE/MODEL"
            )


def _loss(message: ChatMessage, carried: tuple[str, ...]) -> tuple[int, str]:
    """Return the part at which a message loses something, 0 for the message itself, and what; no text if nothing."""
    beside = (message.metadata or {}).get(OURS, {})
    for key in beside.keys() - {"tool_calls", "tool_call_id"}:
        return 0, f"drops {shown(key)} of a message"
    if isinstance(message.content, str):
        return 0, ""
    for place, content in enumerate(message.content, 1):
        lost = _part_loss(content, carried)
        if not lost and message.role != "user":
            lost = f"joins the parts of a message of role {message.role}, and leaves media out"
        if lost:
            return place, lost
    return 0, ""


def _part_loss(content: Content, carried: tuple[str, ...]) -> str:
    if isinstance(content, ContentData):
        part = content.data.get(OURS, {"type": content.type})
        kind = part["type"]
        source = str((part.get(kind) or {}).get("url", ""))
        what = source[5:].partition(";")[0] if source.startswith("data:") else f"the URL {shown(source)} unread"
        return f"cannot carry {kind.partition('_')[0]} as {what}"
    if content.type in _ALL and content.type not in carried:
        return f"cannot carry {content.type}"
    kept = content.internal.get(OURS, {}) if isinstance(content.internal, dict) else {}
    keys = [key for key in (*kept, *kept.get(kept.get("type"), ())) if key not in _SENT and key != kept.get("type")]
    if keys:
        return f"drops the key {shown(keys[0])} of a part"
    if getattr(content, "detail", "") == "original":
        return "sends detail 'high' for 'original'"
    return ""


@modelapi(name=OURS)  # type: ignore[untyped-decorator]  # the runner is not there when types are checked
def provider() -> type:
    """``--model mmprompt/SERVICE/MODEL``: any OpenAI-compatible server, set up as for ``openai-api``."""
    from inspect_ai.model._providers.openai_compatible import OpenAICompatibleAPI  # noqa: PLC0415  # needs openai

    class AllParts(OpenAICompatibleAPI):  # type: ignore[misc]  # likewise
        """Sends each part as it was made; what has no form in a chat request goes as inspect-ai writes it."""

        async def messages_to_openai(self, input: list[ChatMessage]) -> list[Any]:  # noqa: A002  # its name there
            wires: list[Any] = []
            for message in input:
                try:
                    wires.append(wire_of(message))
                except TargetError:
                    wires += await super().messages_to_openai([message])
            return wires

    return AllParts
