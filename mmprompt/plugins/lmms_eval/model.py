"""lmms-eval's model ``mmprompt``: any OpenAI-compatible server, with whole requests."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

from lmms_eval.api.instance import GenerationResult, TokenCounts
from lmms_eval.api.model import lmms
from openai import OpenAI, OpenAIError

from mmprompt.errors import ServerError, TaskError, nearest, shown
from mmprompt.plugins.bridge.harness_rows import MARKED, runner_ended
from mmprompt.render.request import Request

_WIRE = {"max_new_tokens": "max_tokens", "until": "stop"}
_ARGUMENTS = ("model", "base_url", "api_key", "num_concurrent", "max_retries", "timeout")


class ChatModel(lmms):  # type: ignore[misc]  # the runner is absent when types are checked
    """Sends the request behind a row's marker.

    Args:
        model: its name on the server.
        base_url: the server's address, such as ``http://127.0.0.1:8000/v1``; by default ``OPENAI_API_BASE``.
        api_key: by default ``OPENAI_API_KEY``.
        num_concurrent: how many requests are sent at once.
        max_retries: how often a request is sent again after 408, 409, 429, 5xx and broken connections.
        timeout: seconds for a reply.
        batch_size, max_batch_size, device: lmms-eval's own, without meaning here.
    """

    is_simple = False

    def __init__(
        self,
        *,
        model: str = "",
        base_url: str | None = None,
        api_key: str | None = None,
        num_concurrent: int = 8,
        max_retries: int = 3,
        timeout: float = 600,
        **unknown: object,
    ) -> None:
        super().__init__()
        with runner_ended():
            for name in unknown.keys() - {"batch_size", "max_batch_size", "device"}:
                raise TaskError(f"the model mmprompt takes no argument {shown(name)}", nearest(name, _ARGUMENTS))
            if not model:
                raise TaskError("the model lacks its name", "give --model_args model=NAME,base_url=URL")
        address, key = base_url or os.environ.get("OPENAI_API_BASE"), api_key or os.environ.get("OPENAI_API_KEY")
        self._client = OpenAI(base_url=address, api_key=key or "none", max_retries=max_retries, timeout=timeout)
        self._model = model
        self._at_once = int(num_concurrent)
        MARKED.model = True

    def generate_until(self, requests: Sequence[Any]) -> list[GenerationResult]:
        """Return the replies. The first request that fails for good ends the run."""
        from tqdm import tqdm  # noqa: PLC0415  # loads with the run

        with runner_ended():
            asked = [(MARKED.request(context), settings) for context, _, settings, *_ in (r.args for r in requests)]
        with ThreadPoolExecutor(self._at_once) as pool:
            waiting = [pool.submit(self._reply, request, settings) for request, settings in asked]
            try:
                return [reply.result() for reply in tqdm(waiting, desc="Model Responding", disable=self.rank != 0)]
            except OpenAIError as error:
                pool.shutdown(cancel_futures=True)
                with runner_ended():
                    hint = "correct --model_args, or the server; the replies so far are lost"
                    raise ServerError(f"the server at {self._client.base_url}: {error}", hint) from None

    def _reply(self, request: Request, settings: dict[str, Any]) -> GenerationResult:
        said = {_WIRE.get(name, name): value for name, value in settings.items() if name != "do_sample" and value != []}
        keys = dict(request)
        own = {**keys, **keys.pop("extra_body", {}), "model": self._model, **said}
        reply = self._client.chat.completions.create(model=self._model, messages=own.pop("messages"), extra_body=own)
        usage = reply.usage
        counts = None if usage is None else TokenCounts(usage.prompt_tokens, usage.completion_tokens)
        return GenerationResult(reply.choices[0].message.content or "", counts)

    def generate_until_multi_round(self, requests: Sequence[Any]) -> NoReturn:
        """Refuse: a task of mmprompt asks once for each row."""
        raise NotImplementedError

    def loglikelihood(self, requests: Sequence[Any]) -> NoReturn:
        """Refuse: chat servers do not return the likelihood of a text."""
        raise NotImplementedError
