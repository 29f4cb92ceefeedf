"""The model: AISBench's chat client for OpenAI-compatible servers, with our meta template as its parser, and pauses."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from mmprompt.errors import ServerError
from mmprompt.meta_template.meta_template import MetaTemplate
from mmprompt.plugins.aisbench.retries import PatientSession
from mmprompt.plugins.aisbench.template_classes import runner_list, runner_logger
from mmprompt.plugins.bridge.opencompass_family import ConfigMeta
from mmprompt.plugins.bridge.row_faults import told
from mmprompt.plugins.bridge.runner_builder import MediaSection, RunnerBuilder
from mmprompt.plugins.bridge.runner_log import warnings_to
from mmprompt.plugins.bridge.section_marks import RunnerDict, from_marked
from mmprompt.run.client import ATTEMPTS
from mmprompt.targets.json_values import JSONObject

if TYPE_CHECKING:
    from ais_bench.benchmark.models import VLLMCustomAPIChat


class MMPromptChat:
    """AISBench's ``VLLMCustomAPIChat`` with our parser; the stock parser loses parts of prompts.

    A server that is too busy or fails for the moment (429, 5xx) is asked again after a pause, or when it asks for it.

    Args:
        meta_template: as in ``mmprompt.MetaTemplate``.
        media: what may be read for prompts of stock templates, as the ``media`` section of a task file.
        target: what the server accepts, ``"vllm"`` or ``"openai"``.
        retry: the most attempts for one request.

    All other arguments are those of ``VLLMCustomAPIChat``.
    """

    is_api = True
    is_chat_api = True

    def __new__(cls, **options: Any) -> VLLMCustomAPIChat:
        """Return an instance of a class that inherits from AISBench's, which is imported here."""
        return _chat_class()(**options)


class Parser:
    """Turns a prompt into messages; AISBench calls it."""

    def __init__(self, meta_template: ConfigMeta, builder: RunnerBuilder) -> None:
        self._meta = MetaTemplate(meta_template)
        self._builder = builder

    @told
    def parse_template(self, prompt: Any, mode: str) -> Any:
        """Return the messages of a prompt as AISBench's items; for a batch, a list of such results."""
        if type(prompt) in (list, tuple):
            return [self.parse_template(p, mode) for p in prompt]
        with warnings_to(runner_logger):
            messages = self._builder.messages(self._meta.to_messages(from_marked(prompt), mode))
        return runner_list(map(_item, messages))


def _item(message: JSONObject) -> RunnerDict:
    beside = {key: value for key, value in message.items() if key not in ("role", "content")}
    return cast("RunnerDict", {"role": message["role"], "prompt": message["content"], **beside})


@lru_cache(maxsize=1)
def _chat_class() -> type[VLLMCustomAPIChat]:
    from ais_bench.benchmark.models import VLLMCustomAPIChat  # noqa: PLC0415  # the runner is there now
    from ais_bench.benchmark.utils.logging.exceptions import AISBenchRuntimeError  # noqa: PLC0415

    class Chat(VLLMCustomAPIChat):  # type: ignore[misc]  # the runner has no types
        @told
        def __init__(
            self,
            *,
            meta_template: ConfigMeta = None,
            media: MediaSection | None = None,
            target: str = "vllm",
            retry: int = ATTEMPTS,
            **options: Any,
        ) -> None:
            try:
                super().__init__(retry=retry, **options)
            except AISBenchRuntimeError:
                what = f"{self.base_url} does not say which model it has"
                raise ServerError(what, "start the server, check host_ip and host_port, or give model=") from None
            self.template_parser = Parser(meta_template, RunnerBuilder(media, target))

        async def generate(self, *request: Any, session: Any = None, **options: Any) -> Any:
            return await super().generate(*request, session=self._patient(session), **options)

        async def get_ppl(self, *request: Any, session: Any = None, **options: Any) -> Any:
            return await super().get_ppl(*request, session=self._patient(session), **options)

        def _patient(self, session: Any) -> Any:
            return session and PatientSession(session, self.retry)

    return Chat
