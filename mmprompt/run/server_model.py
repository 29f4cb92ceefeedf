"""The model behind an OpenAI-compatible server, as a run asks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from mmprompt.render.request import Request
from mmprompt.run.client import TIMEOUT, ChatClient
from mmprompt.run.keys import is_openai
from mmprompt.run.model import Answer
from mmprompt.run.options import checked_options
from mmprompt.run.prompt_logprobs import PromptLogprobs
from mmprompt.run.reply import Reply
from mmprompt.targets.json_values import JSONValue

CONCURRENCY = 16


class ServerModel:
    """Asks one model on one server; a ``Model``. Each call makes one attempt.

    Args:
        base_url: the address of the API, such as ``http://127.0.0.1:8000/v1``.
        name: the name of the model on the server.
        api_key: sent to this address only; see ``server_access``.
        headers: further headers; no error or log contains their values.
        target: what the server accepts: ``"vllm"``, ``"openai"``, or your own target of that wire form. By default
            ``"openai"`` for OpenAI's own server, else ``"vllm"``.
        timeout: seconds that one attempt may take.
        concurrency: the most requests at once.

    Raises:
        ServerError: ``base_url`` is not the address of an API, or ``name`` is empty.
        TargetError: the target is unknown.
    """

    batch = 1

    def __init__(
        self,
        base_url: str,
        name: str,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        target: str | None = None,
        timeout: float = TIMEOUT,
        concurrency: int = CONCURRENCY,
    ) -> None:
        self.target = target or ("openai" if is_openai(base_url) else "vllm")
        self.client = ChatClient(base_url, name, api_key=api_key, timeout=timeout, target=self.target, headers=headers)
        self._logprobs = PromptLogprobs(self.client)
        self.name = name
        self.base_url = self.client.base_url
        self.concurrency = concurrency

    def __repr__(self) -> str:
        """Show address and model, but not the key."""
        return f"ServerModel({self.client.base_url!r}, {self.name!r})"

    def ask(self, requests: Sequence[Request], options: Mapping[str, JSONValue]) -> list[Answer]:
        """Return the answers, one for each request in order, after one attempt.

        Raises:
            ServerError: the client sets an option itself, or it holds NaN or infinity.
        """
        settings = checked_options(options)
        return [self.client.answer(partial(self._reply, request, settings)) for request in requests]

    def perplexities(self, requests: Sequence[Request]) -> list[Answer]:
        """Return the perplexity of each request's text.

        Raises:
            ServerError: the server gives no log-probabilities of the prompt.
        """
        return [self._logprobs.perplexity(request) for request in requests]

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def _reply(self, request: Request, settings: Mapping[str, JSONValue]) -> Reply:
        return self.client.reply(request.body_chunks(self.name, settings))
