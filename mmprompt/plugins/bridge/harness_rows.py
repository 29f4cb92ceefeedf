"""What lm-eval and lmms-eval, a fork of it, have in common: the config and the documents of a task of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mmprompt.errors import TaskError, nearest, shown
from mmprompt.plugins.bridge.requests import answer_texts, request_name
from mmprompt.plugins.bridge.row_markers import MARKED
from mmprompt.plugins.bridge.row_options import AskedRows, Given, asked_rows

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
