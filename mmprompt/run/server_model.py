"""The model behind an OpenAI-compatible server, as a run asks it."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from mmprompt.errors import ServerError
from mmprompt.render.request import Request
from mmprompt.run.address import is_openai
from mmprompt.run.client import TIMEOUT, ChatClient
from mmprompt.run.model import Answer
from mmprompt.run.options import checked_options
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


_ASKED: dict[str, JSONValue] = {
    "prompt_logprobs": 0,
    "add_generation_prompt": False,
    "max_tokens": 1,
    "temperature": 0,
}
"""vLLM's settings for the log-probability of each token of the prompt, and of no other; one token must be generated."""

_VLLMS_OWN = ("prompt_logprobs", "add_generation_prompt")
_HINT = "ask vLLM, or give --model the folder of a local model"

PLACEHOLDERS = frozenset(
    (
        "<image>", "<video>", "<audio>", "<|image|>", "<|video|>", "<|audio|>", "<|image_pad|>", "<|video_pad|>",
        "<|audio_pad|>", "<|IMAGE|>", "<|VIDEO|>", "<|AUDIO|>", "<image_soft_token>", "<audio_soft_token>",
        "<IMG_CONTEXT>", "[IMG]", "[IMG_BREAK]", "[IMG_END]", "[AUDIO]", "<|image_soft_token|>", "<|media_pad|>",
        "<im_patch>", "<|patch|>", "<|endoftext10|>", "<|endoftext11|>",
    )
)  # fmt: skip
"""Tokens that stand for a piece of a medium in the prompts of known models."""

_SPECIAL = re.compile(r"<[^\s<>]{2,}>|\[[^\s\[\]]{2,}\]")
_RUN = 4
"""So many equal tokens in a row, each with the looks of a special token, stand for a medium."""


_LEAST, _MOST = -1e9, 1.0


class PromptToken(NamedTuple):
    """A token of a prompt, as text, and its log-probability; None for the first."""

    text: str
    logprob: float | None


class PromptLogprobs:
    """Asks a server for perplexities. Threads may share it.

    The first request goes out alone: a server that gives no log-probabilities of prompts gets no second one.
    """

    def __init__(self, client: ChatClient) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._gives_them = False
        self._refusal: ServerError | None = None

    def perplexity(self, request: Request) -> Answer:
        """Return the perplexity of a request's prompt after one attempt, or the error of the attempt.

        Raises:
            ServerError: the server gives no log-probabilities of prompts.
        """
        if self._gives_them:
            return self._asked(request)
        with self._lock:
            if self._refusal is None:
                return self._asked(request)
        raise self._refusal

    def _asked(self, request: Request) -> Answer:
        body = request.body_chunks(self._client.model, _ASKED)
        with_media = _has_media(request)
        try:
            answer = self._client.answer(lambda: self._perplexity(body, with_media=with_media))
        except _NoLogprobsError as error:
            refusal = ServerError(f"{self._client.base_url} gives no log-probabilities of prompts{error}", _HINT)
            if self._gives_them:
                return Answer(error=refusal, passing=True)
            self._refusal = refusal
            raise refusal from None
        self._gives_them = self._gives_them or answer.perplexity is not None
        return answer

    def _perplexity(self, body: Sequence[bytes], *, with_media: bool) -> float:
        try:
            entries = self._client.post(body).get("prompt_logprobs")
        except ServerError as error:
            if any(name in error.what for name in _VLLMS_OWN):
                raise _NoLogprobsError(f": {error.what}") from None
            raise
        if not entries:
            raise _NoLogprobsError("")
        return perplexity_of(list(_tokens(entries)), with_media=with_media)


class _NoLogprobsError(Exception):
    """The server gives no log-probabilities of prompts; the text says more, after a colon."""


def perplexity_of(tokens: Sequence[PromptToken], *, with_media: bool) -> float:
    """Return exp of the mean negative log-probability of the tokens after the first, those of media left out.

    With media in the request, a token stands for a medium if it is one of ``PLACEHOLDERS``, or if it looks like a
    special token (``<…>``, ``[…]``) and four of it follow one another.

    Raises:
        ServerError: no token stands for the media of the request, or there is no other token.
    """
    media = set(_placeholders(tokens)) if with_media else set()
    if with_media and not media:
        raise ServerError("the server's prompt has no tokens that are known to stand for media", _HINT)
    counted = [token.logprob for token in tokens if token.text not in media and token.logprob is not None]
    if not counted:
        raise ServerError("the prompt has no token to predict", "give it more text")
    return math.exp(min(-math.fsum(counted) / len(counted), 700.0))


def _placeholders(tokens: Sequence[PromptToken]) -> Iterator[str]:
    for text, run in groupby(token.text for token in tokens):
        if text in PLACEHOLDERS or (_SPECIAL.fullmatch(text) and sum(1 for _ in run) >= _RUN):
            yield text


def _tokens(entries: Any) -> Iterator[PromptToken]:
    """Yield the tokens of a prompt. The first has no log-probability; of several candidates the first is the token.

    Raises:
        ServerError: the log-probabilities are not in vLLM's form.
    """
    try:
        for number, entry in enumerate(entries):
            if entry is None and number == 0:
                yield PromptToken("", None)
                continue
            found = next(iter(entry.values()))
            yield PromptToken(str(found["decoded_token"]), _logprob(found["logprob"]))
    except (TypeError, ValueError, OverflowError, LookupError, AttributeError, StopIteration):
        raise ServerError("the server's log-probabilities are not in vLLM's form", _HINT) from None


def _logprob(value: Any) -> float:
    """Return the logarithm of a probability, as rounding leaves it; one below ``_LEAST`` is as good as impossible."""
    logprob = float(value)
    if not logprob < _MOST:
        raise ValueError(value)
    return max(logprob, _LEAST)


def _has_media(request: Request) -> bool:
    """Return whether a message holds a part that is not text."""
    messages: Any = request.unencoded["messages"]
    contents = [message["content"] for message in messages]
    return any(part["type"] != "text" for content in contents if isinstance(content, list) for part in content)
