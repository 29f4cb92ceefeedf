"""lm-eval's model ``mmprompt-chat``: its client of OpenAI-compatible servers, with whole requests."""

from __future__ import annotations

from typing import Any

from lm_eval.api.registry import register_model
from lm_eval.models.openai_completions import LocalChatCompletion

from mmprompt.plugins.bridge.harness_rows import MARKED

_WIRE = {"max_gen_toks": "max_tokens", "until": "stop"}


@register_model("mmprompt-chat")
class ChatModel(LocalChatCompletion):  # type: ignore[misc]  # the runner is absent when types are checked
    """Sends the request behind a row's marker. Its arguments are those of ``local-chat-completions``."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        MARKED.model = True

    def _create_payload(
        self, messages: Any, generate: bool = False, gen_kwargs: dict[str, Any] | None = None, **further: Any
    ) -> dict[str, Any]:
        """Return the body: what the user asks for wins over the task's settings, and these over lm-eval's own."""
        request = MARKED.request(messages)
        asked = {_WIRE.get(name, name) for name in gen_kwargs or ()}
        body: dict[str, Any] = super()._create_payload([], generate, dict(gen_kwargs or {}), **further)
        own = dict(request)
        own.update(own.pop("extra_body", {}))
        body.update({name: value for name, value in own.items() if name not in asked})
        return body if body["stop"] else {name: value for name, value in body.items() if name != "stop"}
