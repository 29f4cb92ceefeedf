"""What a run asks: a server, a local model, or the built-in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from mmprompt.errors import MMPromptError
from mmprompt.render.request import Request
from mmprompt.run.reply import Reply
from mmprompt.targets.json_values import JSONValue


class Answer(NamedTuple):
    """What a model gave for one request: a reply, a perplexity, or the error in their place.

    ``seconds`` is the time from the first attempt to the end of the last; pauses count. ``passing`` says that the error
    may not come again: a second try is worth its time. ``hopeless`` says that every other request would meet it too.

    ``after`` is how many seconds the server asked to wait before the next attempt. ``kind`` is ``"busy"`` where it has
    too much to do, ``"late"`` where it gave no answer in time, and ``"away"`` where it was not there.
    """

    reply: Reply | None = None
    perplexity: float | None = None
    error: MMPromptError | None = None
    seconds: float = 0.0
    attempts: int = 1
    passing: bool = False
    hopeless: bool = False
    after: float | None = None
    kind: str = ""


class Model(Protocol):
    """A model that a run asks. Its methods may be called from several threads at once."""

    name: str
    """Stands in the journal's name and in its manifest."""

    target: str
    """What the model accepts: the target that requests are built for."""

    batch: int
    """The most requests in one call."""

    concurrency: int
    """The most calls at once."""

    def ask(self, requests: Sequence[Request], options: Mapping[str, JSONValue]) -> list[Answer]:
        """Return the answers, one for each request in order, after one attempt: ``Flight`` makes the others.

        Args:
            requests: at most ``batch``.
            options: generation settings that stand in place of the requests' own, such as ``temperature``.
        """
        ...

    def perplexities(self, requests: Sequence[Request]) -> list[Answer]:
        """Return the perplexity of each request's text: exp of the mean negative log-likelihood of its tokens.

        The tokens of media are left out.

        Raises:
            ServerError: the model cannot give log-probabilities; then no other request need be sent.
        """
        ...

    def close(self) -> None:
        """Release connections, threads and memory."""
        ...
