"""The arguments with which the user of a runner says what is asked: the options of ``mmprompt render`` by name.

The user's command or config is the caller's word: what it names may be read, as with the options.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from mmprompt.errors import DatasetError, MMPromptError, TaskError, nearest, shown
from mmprompt.plugins.bridge.requests import open_task, task_requests
from mmprompt.render.request import Request
from mmprompt.run.scorers import Scorer, scorer_of
from mmprompt.tasks.config import CHANGE_KEYS
from mmprompt.tasks.grants import Grants
from mmprompt.tasks.media import granted_policy
from mmprompt.tasks.task import Task

if TYPE_CHECKING:
    from mmprompt.targets.json_values import JSONValue

Given = Mapping[str, Any]
"""Arguments as a runner's command or config gives them."""

_ACCESS = ("policy", "media_root", "fetch", "allow_domain", "read_also")
_TEXTS = ("path", "dataset", "train", "abbr", "target", "scorer", "policy")
_SWITCHES = ("fetch", "fit", "skip_bad")
ROW_OPTIONS = (*dict.fromkeys((*_TEXTS, *_ACCESS, *_SWITCHES, *CHANGE_KEYS)),)
"""The names of all arguments."""

_SWITCH = re.compile(r"--(fetch|fit)\b")
_OPTION = re.compile(r"--(path|media-root|allow-domain|read-also|policy|dataset|train|max-side|frames) ([^\s,;)]+)")
_SKIP = re.compile(r"\bskip_bad=true\b")


class AskedRows(NamedTuple):
    """A task, its requests, and their scorer. ``scored`` is False if no row has an answer."""

    task: Task
    requests: list[Request]
    scorer: Scorer

    @property
    def scored(self) -> bool:
        """Whether the rows have answers; either all have or none."""
        return bool(self.requests[0].answers)

    def score(self, request: Request, reply: str) -> float:
        """Return how good a reply is, from 0 to 1."""
        return self.scorer(reply, cast("tuple[JSONValue, ...]", request.answers), request.choices)


def asked_rows(
    given: Given, option: str, check: Callable[[Request], None] | None = None, *, scored: bool = True
) -> AskedRows:
    """Return the requests of the task file or dataset ``path``, each of which passes ``check``.

    ``option`` is how the runner's user writes an argument, with ``{name}`` and ``{value}``, or the value as ``{json}``
    or ``{python}``; errors name it. Without ``scored`` rows need no answers.

    Raises:
        MMPromptError: an argument or the task is wrong, or rows cannot be sent; the error lists these rows.
    """
    try:
        return _asked(given, check, scored)
    except MMPromptError as error:
        what, hint = (_in_words(text, option) for text in (error.what, error.hint))
        raise type(error)(what, hint, error.where, error.code) from None


def _in_words(text: str, option: str) -> str:
    """Return a text with the options of our command line as the runner's user writes them."""

    def switch(name: str) -> str:
        return option.format(name=name, value="true", json="true", python="True")

    def valued(found: re.Match[str]) -> str:
        value = found[2]
        quoted = value if found[1] in ("max-side", "frames") else f'"{value}"'
        return option.format(name=found[1].replace("-", "_"), value=value, json=quoted, python=quoted)

    text = _SKIP.sub(lambda _: switch("skip_bad"), _SWITCH.sub(lambda found: switch(found[1]), text))
    return _OPTION.sub(valued, text)


def _asked(given: Given, check: Callable[[Request], None] | None, scored: bool) -> AskedRows:
    wanted = {name: value for name, value in given.items() if value is not None}
    for name, value in wanted.items():
        _check_value(name, value)
    if "path" not in wanted:
        raise TaskError("no task file or dataset is given", "name a task file or dataset: --path FILE")
    grants = _grants(wanted)
    dataset, train, abbr = (wanted.get(name) for name in ("dataset", "train", "abbr"))
    task = open_task(wanted["path"], dataset, train, grants=grants, abbr=abbr)
    named = wanted.get("scorer") or task.config.scorer
    scorer = scorer_of(named, task.config.index_base)
    requests = task_requests(
        task,
        wanted.get("target", "vllm"),
        policy=granted_policy(task, grants),
        changes={name: wanted[name] for name in CHANGE_KEYS if name in wanted} or None,
        check=_with_choices(check) if scored and named == "choice" else check,
        skip_bad=wanted.get("skip_bad", False),
        answered=(True if named is not None else None) if scored else False,
    )
    return AskedRows(task, requests, scorer)


def _with_choices(check: Callable[[Request], None] | None) -> Callable[[Request], None]:
    """Return ``check`` with a further one: a row has choices."""

    def check_both(request: Request) -> None:
        if check is not None:
            check(request)
        if not request.choices:
            hint = "give a column of choices, such as options, or use the scorer exact or contains"
            raise DatasetError("the row has no choices to score by", hint, code="MM702")

    return check_both


def _check_value(name: str, value: object) -> None:
    if name not in ROW_OPTIONS:
        raise TaskError(f"unknown argument {shown(name)}", nearest(name, ROW_OPTIONS))
    if name in _TEXTS and not isinstance(value, str):
        raise TaskError(f"{name} is {shown(value)}", "give a text")
    if name in _SWITCHES and not isinstance(value, bool):
        raise TaskError(f"{name} is {shown(value)}", "give true or false")


def _grants(wanted: Given) -> Grants:
    roots, domains, formats = (_texts(wanted, name) for name in ("media_root", "allow_domain", "read_also"))
    return Grants(wanted.get("policy"), roots, wanted.get("fetch", False), domains, formats)


def _texts(wanted: Given, name: str) -> tuple[str, ...]:
    value = wanted.get(name, ())
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        raise TaskError(f"{name} is {shown(value)}", "give a text, or a list of texts")
    return tuple(texts)
