"""A run: a model asked all requests of a task, its replies in a journal."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from math import inf
from typing import Any, NamedTuple

from mmprompt.errors import MMPromptError, TaskError, shown
from mmprompt.media.policy import MediaPolicy
from mmprompt.render.builder import RequestBuilder
from mmprompt.run.interruption import Interruption
from mmprompt.run.journal_file import JournalFile
from mmprompt.run.manifest import Manifest, manifest_of
from mmprompt.run.model import Model
from mmprompt.run.models import LocalSettings, ServerSettings, model_for
from mmprompt.run.runner import OnFailed, Runner, RunSettings
from mmprompt.run.score import NoAnswersError, ScoreReport, score_journal
from mmprompt.run.scorers import Scorer, name_of, scorer_of
from mmprompt.targets.json_values import JSONValue
from mmprompt.tasks.files import is_task_file
from mmprompt.tasks.load import load_task
from mmprompt.tasks.media import task_policy
from mmprompt.tasks.task import Task

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]")


class RunReport(NamedTuple):
    """What became of the rows of a run. With repeats a row counts once for each.

    ``journal`` is the file with the replies. ``answered`` rows have a prediction there now; ``kept`` of them had it
    before this run. ``failed`` rows ended with an error. ``stale`` lines of the journal belong to no row of the
    dataset and count in no score, and ``torn`` ones cannot be read. ``repeated`` rows have the id of an earlier row.
    ``interrupted`` is True after ``^C``. ``scores`` is None then, and where no row has a right answer.
    """

    journal: str
    answered: int
    kept: int = 0
    failed: int = 0
    stale: int = 0
    torn: int = 0
    repeated: int = 0
    interrupted: bool = False
    scores: ScoreReport | None = None

    def _repr_html_(self) -> str:
        """Return the first replies for a notebook."""
        from mmprompt.viewer.notebook import report_html  # noqa: PLC0415  # an import against the order

        return report_html(self)


class Hooks(NamedTuple):
    """What a run calls: for a row without a prediction, after each row, and after the first ``^C``."""

    on_failed: OnFailed | None = None
    on_row: Callable[[], object] | None = None
    on_stop: Callable[[], object] | None = None


def run_task(  # noqa: D417  # the other arguments are options of the command
    task: Task | str | os.PathLike[str] | Mapping[str, Any],
    model: Model | str | None = None,
    output: str | os.PathLike[str] | None = None,
    *,
    base_url: str | None = None,
    options: Mapping[str, JSONValue] | None = None,
    limit: int | None = None,
    repeats: int = 1,
    scorer: str | Scorer | None = None,
    group_by: Sequence[str] = (),
    concurrency: int | None = None,
    rpm: float | None = None,
    timeout: float | None = None,
    retry_errors: bool = False,
    overwrite: bool = False,
    policy: MediaPolicy | None = None,
    on_error: Callable[[MMPromptError], None] | None = None,
    device: str = "cpu",
) -> RunReport:
    """Ask a model all requests of a task, append its replies to a journal as they come, and score them.

        report = run_task("vqa.jsonl", "qwen", base_url="http://127.0.0.1:8000/v1")
        print(report.scores.total.score)

    A journal that is there is gone on with. The arguments that are not listed here are options of ``mmprompt run``.

    Args:
        task: a task, or what ``load_task`` takes.
        model: the model's name on the server, the folder of a local model, ``"builtin:shapes"``, or an object with the
            methods of ``mmprompt.run.model.Model``; by default what the task names.
        output: the journal; by default named by dataset and model, in the current folder.
        options: generation settings that stand in place of the task's, such as ``{"temperature": 0}``.
        on_error: receives the error of each row that ends without a prediction. The journal has it too.

    Raises:
        TaskError: the journal is in use or was begun with other settings, or no model is given.
        ServerError: every request would fail, because the server is not there, or refuses the key or the model.
    """
    path = os.fspath(task) if isinstance(task, (str, os.PathLike)) else None
    loaded = task if isinstance(task, Task) else load_task(task, policy=policy)
    settings = RunSettings(options or {}, limit, repeats, 1, concurrency, rpm, retry_errors, tuple(group_by))
    plan = Plan(None if path is None or not is_task_file(path) else path, scorer, overwrite=overwrite, policy=policy)
    hooks = Hooks(None if on_error is None else lambda failed, _: on_error(failed.error))
    to = None if output is None else os.fspath(output)
    if model is not None and not isinstance(model, str):
        return ask_task(loaded, model, to, settings, plan, hooks)
    local = LocalSettings(device, concurrency, policy or loaded.policy or task_policy(loaded))
    with closing(model_for(model, base_url, loaded.config, ServerSettings(None, timeout, concurrency), local)) as asked:
        return ask_task(loaded, asked, to, settings, plan, hooks)


class Plan(NamedTuple):
    """What a run is told beside how to ask. ``task_path`` is the task's file; ``headers`` are ``NAME=VARIABLE``."""

    task_path: str | None = None
    scorer: str | Scorer | None = None
    headers: tuple[str, ...] = ()
    overwrite: bool = False
    media: str | None = None
    policy: MediaPolicy | None = None


def ask_task(  # noqa: PLR0917  # what, whom, where, how
    task: Task, model: Model, output: str | None, settings: RunSettings, plan: Plan, hooks: Hooks
) -> RunReport:
    """Ask a model all requests of a task; see ``run_task``.

    Raises:
        KeyboardInterrupt: a second ``^C`` came.
    """
    journal, settings, manifest = planned_run(task, model, output, settings, plan)
    builder = RequestBuilder(task, model.target, media=plan.media, policy=plan.policy)
    with (
        closing(builder),
        JournalFile(journal, manifest, overwrite=plan.overwrite) as file,
        Interruption(hooks.on_stop) as interruption,
    ):
        runner = Runner(builder, model, file, settings, on_failed=hooks.on_failed, on_row=hooks.on_row)
        report = RunReport(journal, *runner.run(interruption))
    return scored(report, plan, settings)


def planned_run(
    task: Task, model: Model, output: str | None, settings: RunSettings, plan: Plan
) -> tuple[str, RunSettings, Manifest]:
    """Return the name of a run's journal, its settings with the end token of the task, and its manifest.

    Raises:
        TaskError: there is no journal whose errors could be retried, or the scorer is unknown.
    """
    journal = output or journal_name(task, plan.task_path, model.name)
    if settings.retry_errors and not os.path.isfile(journal):
        raise TaskError(f"there is no journal {journal}, so there are no errors to retry", "leave out --retry-errors")
    scorer_of(plan.scorer)
    _require_numbers(settings)
    settings = settings._replace(options={**_stop_tokens(task, model.target), **settings.options})
    base_url = getattr(model, "base_url", None)  # of a server; other models have none, and get no headers
    manifest = manifest_of(
        task,
        path=plan.task_path,
        model=model.name,
        target=model.target,
        options=settings.options,
        scorer=task.config.scorer if plan.scorer is None else name_of(plan.scorer),
        limit=settings.limit,
        repeats=settings.repeats,
        headers=dict(item.split("=", 1) for item in plan.headers) if base_url else {},
        base_url=base_url,
    )
    return journal, settings, manifest


def scored(report: RunReport, plan: Plan, settings: RunSettings) -> RunReport:
    """Return the report of a run with its scores, if it was not interrupted and rows have right answers."""
    if report.interrupted:
        return report
    with suppress(NoAnswersError):
        report = report._replace(scores=score_journal(report.journal, plan.scorer, group_by=settings.group_by))
    return report


def _stop_tokens(task: Task, target: str) -> dict[str, JSONValue]:
    """Return the meta template's end token as the setting that vLLM and local models take."""
    ids = task.meta_template.eos_token_id
    if ids is None or target not in ("vllm", "hf"):
        return {}
    return {"stop_token_ids": list(ids) if isinstance(ids, list) else [ids]}


def _require_numbers(settings: RunSettings) -> None:
    """Refuse numbers that the command line refuses.

    Raises:
        TaskError: one is below 1, or is no number.
    """
    for name in ("limit", "repeats", "workers", "concurrency"):
        value = getattr(settings, name)
        if value is not None and (type(value) is not int or value < 1):
            raise TaskError(f"{name} is {shown(repr(value))}", f"give {name} a whole number from 1")
    rpm = settings.rpm
    if rpm is not None and not (type(rpm) in (int, float) and 0.0 < rpm < inf):
        raise TaskError(f"rpm is {shown(repr(rpm))}", "give rpm a number above 0")


def journal_name(task: Task, task_path: str | None, model: str) -> str:
    """Return the default name of a journal: the dataset's name and the model's."""
    path = None if task.dataset is None else task.dataset.path
    dataset = os.path.basename(os.path.normpath(task_path or "rows" if path is None or path == "-" else path))
    if dataset.endswith((".gz", ".zst")):
        dataset = os.path.splitext(dataset)[0]
    named = os.path.basename(os.path.normpath(model)) if os.path.isdir(model) else model
    return _NOT_IN_NAMES.sub("_", f"{os.path.splitext(dataset)[0]}-{named}") + ".jsonl"
