"""What lm-eval and lmms-eval, a fork of it, have in common: the config and the documents of a task of ours."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from mmprompt.errors import MMPromptError, TaskError, nearest, shown
from mmprompt.errors.findings import Finding
from mmprompt.plugins.bridge.requests import answer_texts, request_name
from mmprompt.plugins.bridge.row_options import AskedRows, Given, asked_rows
from mmprompt.render.request import Request

_KEPT = ("task", "task_alias", "tag", "metric_list", "generation_kwargs", "filter_list", "repeats", "metadata")
_ADDED = {
    "output_type": "generate_until", "test_split": "test", "doc_to_text": "prompt", "doc_to_target": "answers",
    "num_fewshot": 0,
}  # fmt: skip
_MEAN = {"metric": "score", "aggregation": "mean", "higher_is_better": True}
_NO_SCORE = {"metric": "bypass", "aggregation": "bypass", "higher_is_better": True}


class HarnessRows(NamedTuple):
    """The keys of a task's config, and the columns of its documents, one a request."""

    config: dict[str, Any]
    columns: dict[str, list[Any]]


def harness_rows(config: Mapping[str, Any], given: Given, option: str) -> HarnessRows:
    """Return the task of a YAML file of the runner's; ``given`` and ``option`` are those of ``asked_rows``.

    ``metric_list``, ``generation_kwargs``, ``filter_list`` and ``repeats`` count as in any task of the runner. Without
    a ``metric_list`` the score is that of the task file's scorer.

    Raises:
        TaskError: the YAML has keys about prompts, which are the task file's.
        MMPromptError: rows cannot be asked.
    """
    for key in config.keys() - {*_KEPT, "class", "dataset_kwargs"}:
        hint = nearest(key, (*_KEPT, "dataset_kwargs"))
        raise TaskError(f"the key {shown(key)} has no meaning for a task of mmprompt", hint)
    kept = {key: config[key] for key in _KEPT if key in config}
    asked = asked_rows(given, option)
    metrics = {} if "metric_list" in kept else _metrics(asked)
    settings = {"until": [], **(kept.pop("generation_kwargs", None) or {})}
    requests = asked.requests
    columns: dict[str, list[Any]] = {
        "id": [str(request_name(request)) for request in requests],
        "prompt": MARKED.add(requests),
        "answers": [answer_texts(request) for request in requests],
    }
    return HarnessRows({**kept, **metrics, **_ADDED, "generation_kwargs": settings}, columns)


def marker_alone(doc: Mapping[str, str], model: str, system_instruction: object) -> str:
    """Return the marker of a document as its whole prompt.

    Raises:
        TaskError: another model than ``model`` would send the marker itself, or the command line asks for a prompt.
    """
    MARKED.require_model(f"use --model {model}")
    if system_instruction:
        raise TaskError("--system_instruction is not the task file's", "write a SYSTEM item in its template")
    return doc["prompt"]


def _metrics(asked: AskedRows) -> dict[str, Any]:
    """Return the keys for the task file's own scorer. Without answers there is no score."""
    if not asked.scored:
        return {"metric_list": [_NO_SCORE], "process_results": lambda *_: {"bypass": 0.0}}

    def score(doc: Mapping[str, str], results: list[str]) -> dict[str, float]:
        return {"score": asked.score(MARKED.request(doc["prompt"]), results[0])}

    return {"metric_list": [_MEAN], "process_results": score}


@contextmanager
def runner_ended() -> Iterator[None]:
    """End the runner's process if the block raises an error of ours: the message on standard error, exit code 1.

    Raises:
        SystemExit: in the error's place.
    """
    try:
        yield
    except MMPromptError as error:
        raise SystemExit(f"mmprompt: {Finding.of(error)}") from None


_MARKER = re.compile(r"mmprompt:\d+:[0-9a-f]{16}")


class MarkedRequests:
    """The requests of one process by their markers, ``mmprompt:ROW:HASH``.

    A runner's task puts the marker into the runner's prompt, and our model for that runner sends the request in its
    place. The hash is of the whole request, so a reply that a runner has cached belongs to the same request.
    ``model`` is True once our model exists: any other model would send the marker itself.
    """

    def __init__(self) -> None:
        self._requests: dict[str, Request] = {}
        self.model = False

    def add(self, requests: Iterable[Request]) -> list[str]:
        """Keep requests, and return their markers."""
        made = {_marker(row, request): request for row, request in enumerate(requests)}
        self._requests.update(made)
        return list(made)

    def request(self, prompt: object) -> Request:
        """Return the request of a runner's prompt.

        Raises:
            TaskError: the prompt is not the marker of one of these requests alone.
        """
        found = self._requests.get(prompt) if isinstance(prompt, str) else None
        if found is None and isinstance(prompt, str) and _MARKER.fullmatch(prompt):
            raise TaskError(f"{prompt} is the marker of another run", "delete the runner's cache of prompts")
        if found is None:
            what = f"the model of mmprompt asks rows of mmprompt's tasks only, and the prompt is {shown(prompt)}"
            raise TaskError(what, "use a model of the runner for its own tasks")
        return found

    def require_model(self, hint: str) -> None:
        """Refuse to go on with another model than ours; ``hint`` says how to choose ours.

        Raises:
            TaskError: our model has not been made in this process.
        """
        if not self.model:
            raise TaskError("another model would get a marker in place of each request", hint)


def _marker(row: int, request: Request) -> str:
    return f"mmprompt:{row}:{hashlib.sha256(request.body()).hexdigest()[:16]}"


MARKED = MarkedRequests()
"""Those of this process: a runner gives its tasks and its models no place to meet."""
