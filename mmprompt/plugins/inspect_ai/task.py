"""The task ``mmprompt/task``: a task file or dataset as samples, their scorers, and checks before the run."""

from __future__ import annotations

import re
from collections.abc import Callable

from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Scorer, includes, match, pattern
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver

from mmprompt.errors import DatasetError, MMPromptError, TaskError, nearest, shown
from mmprompt.errors.findings import Finding
from mmprompt.plugins.bridge.requests import answer_texts, folders_of, open_task, request_name, task_requests
from mmprompt.plugins.inspect_ai.messages import request_messages
from mmprompt.plugins.inspect_ai.model import asked_provider, check_loss, settings_of
from mmprompt.render.request import Request
from mmprompt.tasks import task as tasks

_LETTER = (  # a letter alone, a letter and a mark at the beginning, or a phrase such as "the answer is B"
    r"^\W*([A-Z])\W*$|^\W*([A-Z])[).:\u3001\uff1a]"
    r"|(?:answer|option|choice|答案)\W*(?:is|为|是)?\W*(?-i:([A-Z])(?![A-Za-z]))"
)
_OPTION = re.compile(r"--(media-root|dataset|train) ")
"""Options of our command line that errors name; here they are arguments of the task."""

_SCORERS = {"exact": lambda: match("exact"), "contains": includes, "choice": lambda: pattern(_LETTER)}


@task(name="task")  # type: ignore[untyped-decorator]  # the runner is not there when types are checked
def mmprompt_task(
    path: str = "",
    *,
    dataset: str | None = None,
    train: str | None = None,
    target: str = "vllm",
    scorer: str | None = None,
    media_root: str | list[str] | None = None,
    skip_bad: bool = False,
) -> Task:
    """Ask a model the rows of a task file or dataset.

    Args:
        path: a task file, or a dataset.
        dataset: replaces the rows of the task file. A dataset config of OpenCompass or AISBench needs it.
        train: the file that holds the examples; it goes with ``dataset``.
        target: the server whose limits the requests must keep.
        scorer: ``exact``, ``choice`` or ``contains``; replaces the task file's ``eval_cfg.scorer``.
        media_root: folders that media may lie in, beside the dataset's own.
        skip_bad: leave out rows that cannot be sent. By default such a row ends the run before it begins.
    """
    try:
        if not path:
            raise TaskError("no task file or dataset is given", "name a task file or dataset: -T path=FILE")
        opened = open_task(path, dataset, train, folders_of(media_root))
        name = scorer or opened.config.scorer
        provider_name = asked_provider()
        scored, config = _scorer(name), settings_of(opened, provider_name)
        rows = _rows(opened, target, media_root, skip_bad, _check(opened, name, provider_name))
    except MMPromptError as error:
        from rich.markup import escape  # noqa: PLC0415  # inspect-ai prints this with rich

        told = _OPTION.sub(lambda option: f"-T {option[1].replace('-', '_')}=", str(Finding.of(error)))
        raise PrerequisiteError(escape(f"mmprompt: {told}")) from None
    return Task(dataset=rows, setup=whole(), solver=generate(tool_calls="none"), scorer=scored, config=config)


def dataset(
    path: str,
    *,
    dataset: str | None = None,
    train: str | None = None,
    target: str = "vllm",
    media_root: str | list[str] | None = None,
    skip_bad: bool = False,
) -> MemoryDataset:
    """Return the rows of a task file or dataset, for a task of your own. The arguments are those of ``mmprompt_task``.

    With a model provider other than ours, ``Task(setup=whole(), …)`` refuses messages that it would not send whole.

    Raises:
        MMPromptError: the task or dataset cannot be read, or a row cannot be sent.
    """
    return _rows(open_task(path, dataset, train, folders_of(media_root)), target, media_root, skip_bad)


@solver  # type: ignore[untyped-decorator]  # as above
def whole() -> Solver:
    """Refuse, before anything is sent, messages that the model's provider would not send whole."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001  # a solver's signature
        check_loss(state.messages, state.model.api)
        return state

    return solve


def _check(opened: tasks.Task, scorer: str | None, provider_name: str) -> Callable[[Request], None]:
    """Return a check that refuses requests that cannot be sent whole to the model, or that cannot be scored."""

    def check(request: Request) -> None:
        check_loss(request_messages(request), provider_name)
        answers = answer_texts(request)
        if scorer and not any(answers):  # inspect-ai's scorers find an empty answer in every reply
            raise DatasetError("no answer to score against", f"give '{opened.output_column}'", code="MM701")
        if scorer == "choice" and not any(re.fullmatch("[A-Za-z]", answer) for answer in answers):
            raise DatasetError(
                f"the answer {shown(answers[0])} is not a letter", "use the scorer contains or exact", code="MM702"
            )

    return check


def _rows(
    opened: tasks.Task,
    target: str,
    roots: str | list[str] | None,
    skip_bad: bool,
    check: Callable[[Request], None] | None = None,
) -> MemoryDataset:
    requests = task_requests(opened, target, roots=folders_of(roots), check=check, skip_bad=skip_bad)
    file = None if opened.dataset is None else opened.dataset.path
    return MemoryDataset([_sample(request) for request in requests], name=file, location=file)


def _sample(request: Request) -> Sample:
    dropped = {"dropped_examples": request.dropped} if request.dropped else None
    answers = answer_texts(request)
    target = answers[0] if len(answers) == 1 else answers
    messages = request_messages(request)
    return Sample(input=messages, target=target or "", id=request_name(request), metadata=dropped)


def _scorer(name: str | None) -> Scorer | None:
    if name is None:
        return None
    if name not in _SCORERS:
        raise TaskError(f"inspect-ai has no scorer like '{name}'", nearest(name, _SCORERS))
    return _SCORERS[name]()
