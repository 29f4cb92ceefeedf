"""The model: AISBench's chat client for OpenAI-compatible servers, with the core's meta template for its parser."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from mmprompt.meta_template.meta_template import MetaTemplate
from mmprompt.plugins.aisbench.template_classes import runner_list, runner_logger
from mmprompt.plugins.bridge.message_writer import MessageWriter
from mmprompt.plugins.bridge.runner_log import told_in
from mmprompt.plugins.bridge.section_marks import from_marked


class MMPromptChat:
    """``VLLMCustomAPIChat`` of AISBench that keeps what its parser loses; the other arguments are its own.

    Args:
        meta_template: as in ``mmprompt.MetaTemplate``.
        media: what may be read of prompts whose template did not read them, as the ``media`` section of a task file.
        target: what the server takes, ``"vllm"`` or ``"openai"``.
    """

    is_api = True
    is_chat_api = True

    def __new__(cls, **options: Any) -> Any:
        """Return an instance of a class that is made when AISBench is there to inherit from."""
        return _chat_class()(**options)


class Parser:
    """What AISBench asks for the messages of a prompt."""

    def __init__(self, meta_template: Any, outgoing: MessageWriter) -> None:
        self._meta = MetaTemplate(meta_template)
        self._outgoing = outgoing

    def parse_template(self, prompt: Any, mode: str) -> Any:
        """Return the messages of a prompt as AISBench's items, or of a batch a list of them.

        Raises:
            MMPromptError: a prompt that gives no messages, or a medium that cannot be read.
        """
        if type(prompt) in (list, tuple):
            return [self.parse_template(p, mode) for p in prompt]
        with told_in(runner_logger):
            messages = self._outgoing.messages(self._meta.to_messages(from_marked(prompt), mode))
        return runner_list([_item(message) for message in messages])


def _item(message: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": message["role"], "prompt": message["content"], **_others(message)}


def _others(message: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key not in ("role", "content")}


@lru_cache(maxsize=1)
def _chat_class() -> Any:
    from ais_bench.benchmark.models import VLLMCustomAPIChat  # noqa: PLC0415  # the runner is there now

    class Chat(VLLMCustomAPIChat):  # type: ignore[misc]  # the runner has no types
        def __init__(
            self,
            *,
            meta_template: Any = None,
            media: Mapping[str, Any] | None = None,
            target: str = "vllm",
            **options: Any,
        ) -> None:
            super().__init__(**options)
            self.template_parser = Parser(meta_template, MessageWriter(media, target))

    return Chat
