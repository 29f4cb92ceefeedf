"""inspect-ai's model providers: what the stock ones would not send, and ours, ``mmprompt``, which sends every part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import ChatMessage, Content, ContentData, GenerateConfig, ModelName, get_model, modelapi

from mmprompt.errors import TargetError, TaskError, shown
from mmprompt.plugins.inspect_ai.messages import OURS, wire_of
from mmprompt.tasks import task as tasks

_ALL = ("image", "audio", "video")
_PICTURES = ("anthropic", "azureai", "bedrock", "grok", "groq", "mistral", "sagemaker")
_TEXT = ("hf", "nnterp", "openai-api-completions", "transformer_lens", "vllm-completions")
CARRIED = {"google": _ALL, **dict.fromkeys(_PICTURES, ("image",)), **dict.fromkeys(_TEXT, ())}
"""The media that these providers send, as their sources say (0.3.285)."""

_SENDS_NOTHING = ("mockllm", "none")

_OWN_FORM = CARRIED.keys() - {"openai-api-completions", "sagemaker", "vllm-completions"}
"""The providers that send only those settings that inspect-ai names."""

OPENAI_LIKE = ("image", "audio")
"""The media that all other providers send. They write OpenAI's form."""

_SETTINGS = ("max_tokens", "temperature", "top_p", "seed", "frequency_penalty", "presence_penalty", "reasoning_effort")
_SENT = {"type", "detail", "format"}


def check_loss(messages: Iterable[ChatMessage], provider_name: str) -> None:
    """Refuse messages that a provider would not send whole.

    Raises:
        TargetError: the provider would refuse, drop or change something; the error names the first message and part.
    """
    if provider_name in (OURS, *_SENDS_NOTHING):
        return
    for number, message in enumerate(messages, 1):
        place, lost = _loss(message, CARRIED.get(provider_name, OPENAI_LIKE))
        if lost:
            where = f"message {number}, part {place}" if place else f"message {number}"
            raise TargetError(
                f"{where}: the model provider {provider_name} {lost}", f"use --model {OURS}/SERVICE/MODEL"
            )


def _loss(message: ChatMessage, carried: tuple[str, ...]) -> tuple[int, str]:
    """Return the number of the part that would be lost (0: of the message itself) and why; an empty text if none."""
    beside = (message.metadata or {}).get(OURS, {})
    for key in sorted(beside.keys() - {"tool_calls", "tool_call_id"}):
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


@modelapi(name=OURS)  # type: ignore[untyped-decorator]  # the runner is absent when types are checked
def provider() -> type:
    """``--model mmprompt/SERVICE/MODEL``: any OpenAI-compatible server, configured as for ``openai-api``."""
    from inspect_ai.model._providers.openai_compatible import OpenAICompatibleAPI  # noqa: PLC0415  # needs openai

    class AllParts(OpenAICompatibleAPI):  # type: ignore[misc]  # the runner is absent when types are checked
        """Sends each part unchanged. A message that has no form in a chat request goes as inspect-ai writes it."""

        def __init__(self, model_name: str, **arguments: Any) -> None:
            if "/" not in model_name:
                raise PrerequisiteError(f"mmprompt: the model lacks its server; write --model {OURS}/SERVICE/MODEL")
            if arguments.get("responses_api"):
                raise PrerequisiteError("mmprompt: responses_api has no form for all parts; leave it out")
            super().__init__(model_name, **arguments)

        async def messages_to_openai(self, input: list[ChatMessage]) -> list[Any]:  # noqa: A002  # its name there
            wires: list[Any] = []
            for message in input:
                try:
                    wires.append(wire_of(message))
                except TargetError:
                    wires += await super().messages_to_openai([message])
            return wires

    return AllParts


def asked_provider() -> str:
    """Return the provider of the run's model; ours if there is no model yet."""
    try:
        return str(ModelName(get_model()).api)
    except ValueError:  # no model yet: whole() checks again when there is one
        return OURS


def settings_of(opened: tasks.Task, provider_name: str) -> GenerateConfig:
    """Return the task's settings for the model: ``model.generation``, and the inferencer's ``max_out_len``.

    Raises:
        TaskError: the provider would drop a setting.
    """
    asked: Mapping[str, Any] = opened.config.generation
    length = None if opened.assembly is None else opened.assembly.arguments.get("max_out_len")
    named = (*_SETTINGS, "top_k") if provider_name in _OWN_FORM else _SETTINGS
    own = {key: value for key, value in asked.items() if key in named}
    further = {key: value for key, value in asked.items() if key not in own}
    if further and provider_name in _OWN_FORM:
        what = f"the model provider {provider_name} drops {shown(next(iter(further)))} of model.generation"
        raise TaskError(what, f"leave it out, or use --model {OURS}/SERVICE/MODEL")
    if isinstance(length, int):
        own.setdefault("max_tokens", length)
    return GenerateConfig(**own, extra_body=further or None)
