"""The two questions that ``builtin:shapes`` answers, and what it may answer to each."""

from __future__ import annotations

from typing import NamedTuple

from mmprompt.errors import ServerError


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
        ServerError: there is none of the two.
    """
    lower = text.lower()
    place, last = max((lower.rfind(question.text.lower()), question) for question in QUESTIONS)
    if place < 0:
        known = " and ".join([f"'{question.text}'" for question in QUESTIONS])
        raise ServerError(f"builtin:shapes answers two questions only: {known}", "ask one of them, or another model")
    return last
