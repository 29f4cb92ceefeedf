"""``builtin:shapes`` as a model that a run asks and ``mmprompt serve`` serves."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mmprompt.errors import MMPromptError, ServerError, shown
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.sandbox.decoders import decoder
from mmprompt.media.thumbnail import rgb_square
from mmprompt.messages import MediaPart, MediaRef, Message
from mmprompt.render.request import Request
from mmprompt.run.model import Answer
from mmprompt.run.reply import Reply
from mmprompt.run.shapes.network import SIDE, scores
from mmprompt.targets.json_values import JSONValue
from mmprompt.targets.openai_reading import from_openai

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MARKS = ".,:;!?()\"'"


class ShapesModel:
    """Names the colour or the shape in the last picture of a request. It answers two questions and refuses others.

    Without a picture it guesses: the same text gets the same answer. Threads may share it.

    Args:
        policy: its limits hold for decoding.
    """

    name = "builtin:shapes"
    target = "vllm"
    batch = 1
    concurrency = 4

    def __init__(self, policy: MediaPolicy | None = None) -> None:
        self._policy = policy or MediaPolicy()
        self._decoder = decoder(self._policy)

    def ask(self, requests: Sequence[Request], options: Mapping[str, JSONValue]) -> list[Answer]:
        """Return one word for each request, or its error; ``options`` change nothing."""
        return [self._answer(request, options) for request in requests]

    def perplexities(self, requests: Sequence[Request]) -> list[Answer]:
        """Return 1 / p for each request, where p is the probability of the answer that the request ends with."""
        return [self._answer(request, None) for request in requests]

    def close(self) -> None:
        """End the decoding processes; the model can be used again."""
        self._decoder.close()

    def reply(self, messages: Sequence[Message], options: Mapping[str, JSONValue]) -> Reply:  # noqa: ARG002  # none matters
        """Return the answer to the last question of a user. A token of ``usage`` is a word or a picture.

        Raises:
            ServerError: the question is another one, or the picture is named and not sent.
            SourceError: the picture cannot be decoded.
        """
        asked = _last_question(messages)
        question = question_in(asked)
        picture = _last_picture(messages)
        if picture is None:
            digest = hashlib.sha256(asked.encode("utf-8", "surrogatepass")).digest()
            text = question.answers[int.from_bytes(digest, "big") % len(question.answers)]
        else:
            text = question.answers[int(self._probabilities(picture, question).argmax())]
        words = sum([len(m.text.split()) + sum([isinstance(p, MediaPart) for p in m.parts]) for m in messages])
        usage = {"prompt_tokens": words, "completion_tokens": 1, "total_tokens": words + 1}
        return Reply(text, "stop", usage, {"role": "assistant", "content": text})

    def perplexity(self, messages: Sequence[Message]) -> float:
        """Return 1 / p, where p is the probability of the answer that the messages end with.

        Raises:
            ServerError: the question is another one, or the messages end with none of its answers.
            SourceError: the picture cannot be decoded.
        """
        text = "\n".join([message.text for message in messages])
        question = question_in(text)
        end = text.split()[-1]
        if end.strip(_MARKS).casefold() not in question.answers:
            what = f"builtin:shapes has no perplexity for {shown(end)}"
            raise ServerError(what, f"end the prompt with one of its answers: {', '.join(question.answers)}")
        place = question.answers.index(end.strip(_MARKS).casefold())
        picture = _last_picture(messages)
        if picture is None:
            return float(len(question.answers))
        return 1 / max(float(self._probabilities(picture, question)[place]), 1e-30)

    def _answer(self, request: Request, options: Mapping[str, JSONValue] | None) -> Answer:
        """Return the reply to a request, or without ``options`` its perplexity."""
        began = time.monotonic()
        try:
            messages = from_openai(request.messages or ())
            if options is None:
                return Answer(perplexity=self.perplexity(messages), seconds=time.monotonic() - began)
            return Answer(self.reply(messages, options), seconds=time.monotonic() - began)
        except MMPromptError as error:
            return Answer(error=error, seconds=time.monotonic() - began)

    def _probabilities(self, picture: MediaPart, question: Question) -> NDArray[np.float32]:
        """Return the probability of each answer to a question."""
        import numpy as np  # noqa: PLC0415  # heavy

        first = sum([len(other.answers) for other in QUESTIONS[: QUESTIONS.index(question)]])
        square = self._decoder.run(rgb_square, picture.data, self._policy, SIDE)
        found = scores(square)[first : first + len(question.answers)]
        weights: NDArray[np.float32] = np.exp(found - found.max())
        shares: NDArray[np.float32] = weights / weights.sum()
        return shares


def _last_question(messages: Sequence[Message]) -> str:
    """Return the text of the last message of a user."""
    return next((message.text for message in reversed(messages) if message.role == "user"), "")


def _last_picture(messages: Sequence[Message]) -> MediaPart | None:
    """Return the last picture that was sent; None if there is none."""
    parts = [part for message in messages for part in message.parts if isinstance(part, (MediaPart, MediaRef))]
    picture = next((part for part in reversed(parts) if part.modality == "image"), None)
    if isinstance(picture, MediaRef):
        raise ServerError("builtin:shapes opens no file and no URL", "send the picture inline: --media inline")
    return picture


class Question(NamedTuple):
    """A question and its possible answers, in the order of the network's outputs."""

    text: str
    answers: tuple[str, ...]


QUESTIONS = (
    Question("What colour is the shape?", ("red", "orange", "yellow", "green", "blue", "purple")),
    Question("Which shape is this?", ("circle", "cross", "square", "star", "triangle")),
)


def question_in(text: str) -> Question:
    """Return the question that stands last in ``text``: in-context examples come before it.

    Raises:
        ServerError: the text asks neither question.
    """
    lower = text.lower()
    place, last = max((lower.rfind(question.text.lower()), question) for question in QUESTIONS)
    if place < 0:
        known = " and ".join([f"'{question.text}'" for question in QUESTIONS])
        raise ServerError(f"builtin:shapes answers two questions only: {known}", "ask one of them, or another model")
    return last
