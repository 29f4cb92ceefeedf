"""The task ``mmprompt/task``: a task file or dataset as samples, checked before the run, with the task's own scorer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver

from mmprompt.errors import MMPromptError, TaskError
from mmprompt.errors.findings import Finding
from mmprompt.plugins.bridge.requests import answer_texts, request_name
from mmprompt.plugins.bridge.row_options import AskedRows, asked_rows
from mmprompt.plugins.inspect_ai.messages import OURS, request_messages
from mmprompt.plugins.inspect_ai.model import asked_provider, check_loss, settings_of
from mmprompt.plugins.inspect_ai.server import require_server
from mmprompt.render.request import Request
from mmprompt.run.scorers import scorer_of

_OPTION = "-T {name}={value}"
_GRADUAL = ("anls", "vqa")
"""The scorers whose scores lie between 0 and 1; those of the others are inspect-ai's marks C and I."""


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
    **kwargs: Any,
) -> Task:
    """Ask a model the rows of a task file or dataset.

    Args:
        path: a task file, or a dataset.
        dataset: replaces the rows of the task file. A dataset config of OpenCompass or AISBench needs it.
        train: the file that holds the examples; it goes with ``dataset``.
        target: the server whose limits the requests must keep.
        scorer: a scorer of ``mmprompt score``; replaces the task file's ``eval_cfg.scorer``.
        media_root: folders that media may lie in, beside the dataset's own.
        skip_bad: leave out rows that cannot be sent. By default such a row ends the run before it begins.
        kwargs: further options of ``mmprompt render`` by name, such as ``fetch=True``.
    """
    given = {"path": path or None, "dataset": dataset, "train": train, "target": target, "scorer": scorer}
    access = {"media_root": media_root, "skip_bad": skip_bad}
    try:
        provider_name = asked_provider()
        asked = asked_rows({**kwargs, **given, **access}, _OPTION, _check(provider_name))
        config = settings_of(asked.task, provider_name)
        require_server()
    except MMPromptError as error:
        from rich.markup import escape  # noqa: PLC0415  # inspect-ai prints this with rich

        raise PrerequisiteError(escape(f"mmprompt: {Finding.of(error)}")) from None
    named = scorer or asked.task.config.scorer
    scored = row_score(named, asked.task.config.index_base) if asked.scored else None
    return Task(dataset=_rows(asked), setup=whole(), solver=generate(tool_calls="none"), scorer=scored, config=config)


def dataset(
    path: str,
    *,
    dataset: str | None = None,
    train: str | None = None,
    target: str = "vllm",
    media_root: str | list[str] | None = None,
    skip_bad: bool = False,
    **kwargs: Any,
) -> MemoryDataset:
    """Return the rows of a task file or dataset, for a task of your own. The arguments are those of ``mmprompt_task``.

    With a model provider other than ours, ``Task(setup=whole(), …)`` refuses messages that it would not send whole.

    Raises:
        MMPromptError: the task or dataset cannot be read, or a row cannot be sent.
    """
    given = {"path": path, "dataset": dataset, "train": train, "target": target}
    access = {"media_root": media_root, "skip_bad": skip_bad}
    return _rows(asked_rows({**kwargs, **given, **access}, "{name}={python}", scored=False))


@solver  # type: ignore[untyped-decorator]  # as above
def whole() -> Solver:
    """Refuse, before anything is sent, messages that the model's provider would not send whole."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001  # a solver's signature
        check_loss(state.messages, state.model.api)
        return state

    return solve


@scorer(name="score", metrics=[accuracy(), stderr()])  # type: ignore[untyped-decorator]  # as above
def row_score(name: str | None = None, index_base: int | None = None) -> Scorer:
    """Score a reply by a scorer of ``mmprompt score``, to which the right answers go as the row has them."""
    rate = scorer_of(name, index_base)

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001  # a scorer's signature
        row = state.metadata.get(OURS)
        if row is None:
            raise TaskError("the sample is not of mmprompt's rows", "leave its scorer to the task mmprompt/task")
        reply = state.output.completion
        value = rate(reply, row["answers"], row["choices"])
        whole_marks = {} if name in _GRADUAL else {1.0: CORRECT, 0.0: INCORRECT}
        return Score(value=whole_marks.get(value, value), answer=reply)

    return score


def _check(provider_name: str) -> Callable[[Request], None]:
    """Return a check that refuses requests that the model's provider would not send whole."""
    return lambda request: check_loss(request_messages(request), provider_name)


def _rows(asked: AskedRows) -> MemoryDataset:
    file = None if asked.task.dataset is None else asked.task.dataset.path
    return MemoryDataset(list(map(_sample, asked.requests)), name=file, location=file)


def _sample(request: Request) -> Sample:
    answers = answer_texts(request)
    target = answers[0] if len(answers) == 1 else answers
    metadata: dict[str, Any] = {"dropped_examples": request.dropped} if request.dropped else {}
    if answers:
        metadata[OURS] = {"answers": request.answers, "choices": request.choices}
    name = request_name(request)
    return Sample(input=request_messages(request), target=target or "", id=name, metadata=metadata or None)
