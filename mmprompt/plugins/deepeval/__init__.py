"""deepeval: the rows of a task file or dataset as test cases, and the task's own scorer as a metric.

Ask your model with ``**request``, and give its reply to ``to_deepeval``. All faults of the rows are reported before.
"""

from __future__ import annotations

from typing import Any

from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase, MLLMImage

from mmprompt.errors import TargetError, TaskError
from mmprompt.media.base64_text import encode_text
from mmprompt.messages import MediaPart, Part, TextPart
from mmprompt.plugins.bridge.requests import answer_texts, request_name
from mmprompt.plugins.bridge.row_options import AskedRows, asked_rows
from mmprompt.plugins.bridge.single_prompt import single_prompt
from mmprompt.render.request import Request

__all__ = ["RowScore", "rows", "to_deepeval"]

_MARK = "[DEEPEVAL:"


def rows(path: str, **options: Any) -> AskedRows:
    """Return the rows of a task file or dataset; ``requests`` holds their requests.

    Args:
        path: the task file or dataset.
        options: those of ``mmprompt render`` by name, such as ``media_root="DIR"``, and ``skip_bad=True``, which leaves
            out rows that cannot be sent, with a warning each.

    Raises:
        MMPromptError: an option is wrong, or rows cannot be sent or held by deepeval; the error lists these rows.
    """
    return asked_rows({"path": path, **options}, "{name}={python}", _check)


def _check(request: Request) -> None:
    to_deepeval(request)


def to_deepeval(request: Request, reply: str | None = None) -> LLMTestCase:
    """Return a request and the model's reply as a test case, its pictures at their places in the input.

    Texts that follow each other are joined by a line break. deepeval keeps the pictures in a register of the process,
    so make a case in the process that judges it.

    Raises:
        TargetError: the request holds more than one user message with texts and pictures, has several answers, or a
            text holds deepeval's mark of a picture, which deepeval would open or fetch.
    """
    answers = answer_texts(request)
    if len(answers) > 1:
        raise TargetError(f"deepeval holds one expected output, and the row has {len(answers)} answers", "give one")
    texts = [*answers, *([] if reply is None else [reply])]
    parts = single_prompt(request, "deepeval", ("image",)).parts
    for text in (*texts, *[part.text for part in parts if isinstance(part, TextPart)]):
        if _MARK in text:
            raise TargetError(f"a text holds {_MARK!r}, which marks a picture for deepeval", "change the text")
    name = str(request_name(request))
    return LLMTestCase(
        input=_input(parts),
        actual_output=reply,
        expected_output=answers[0] if answers else None,
        name=name,
        metadata={"mmprompt": name},
    )


def _input(parts: tuple[Part, ...]) -> str:
    words: list[str] = []
    for number, part in enumerate(parts):
        if isinstance(part, MediaPart):
            words.append(str(MLLMImage(dataBase64=encode_text(part.data), mimeType=part.media_type)))
        elif isinstance(part, TextPart):
            joint = "\n" if number and isinstance(parts[number - 1], TextPart) else ""
            words.append(joint + part.text)
    return "".join(words)


class RowScore(BaseMetric):  # type: ignore[misc]  # the runner is absent when types are checked
    """The score of a reply by the task's own scorer, as ``mmprompt run`` gives it. It asks no model.

    Args:
        asked: what ``rows`` returned.
        threshold: the least score with which a case passes.
    """

    def __init__(self, asked: AskedRows, threshold: float = 1.0) -> None:
        self.threshold = threshold
        self.async_mode = False
        self._asked = asked
        self._requests = {str(request_name(request)): request for request in asked.requests}

    def measure(self, test_case: LLMTestCase, *_: object, **__: object) -> float:
        """Return the score of a case that ``to_deepeval`` made of one of the rows."""
        name = (test_case.metadata or {}).get("mmprompt")
        if name not in self._requests or test_case.actual_output is None:
            raise TaskError("the test case is not of these rows, or holds no reply", "make it by to_deepeval")
        score: float = self._asked.score(self._requests[name], test_case.actual_output)
        self.score, self.success, self.reason = score, score >= self.threshold, f"scored {score:g}"
        return score

    async def a_measure(self, test_case: LLMTestCase, *_: object, **__: object) -> float:
        """Return the same as ``measure``."""
        return self.measure(test_case)

    def is_successful(self) -> bool:
        """Return whether the case passes."""
        return bool(self.success)

    @property
    def __name__(self) -> str:
        return "mmprompt"
