"""A run: a model asked all requests of a task, its replies in a journal."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from mmprompt.errors import MMPromptError, TaskError
from mmprompt.media.changes import Changes
from mmprompt.media.policy import MediaPolicy
from mmprompt.render.builder import RequestBuilder
from mmprompt.run.interruption import Interruption
from mmprompt.run.journal_file import JournalFile
from mmprompt.run.manifest import manifest_of
from mmprompt.run.model import Model
from mmprompt.run.models import model_for
from mmprompt.run.runner import OnFailed, Runner, RunSettings
from mmprompt.targets.json_values import JSONValue
from mmprompt.tasks.files import is_task_file
from mmprompt.tasks.load import load_task
from mmprompt.tasks.task import Task

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]")


class RunReport(NamedTuple):
    """What became of the rows of a run. With repeats a row counts once for each.

    ``journal`` is the file with the replies. ``answered`` rows have a prediction there now; ``kept`` of them had it
    before this run. ``failed`` rows ended with an error. ``stale`` lines of the journal belong to no row of the
    dataset, and ``torn`` ones cannot be read. ``interrupted`` is True after ``^C``.
    """

    journal: str
    answered: int
    kept: int = 0
    failed: int = 0
    stale: int = 0
    torn: int = 0
    interrupted: bool = False


class Hooks(NamedTuple):
    """What a run calls: for a row without a prediction, after each row, and after the first ``^C``."""

    on_failed: OnFailed | None = None
    on_row: Callable[[], object] | None = None
    on_stop: Callable[[], object] | None = None


def run_task(
    task: Task | str | os.PathLike[str] | Mapping[str, Any],
    model: Model | str | None = None,
    output: str | os.PathLike[str] | None = None,
    *,
    base_url: str | None = None,
    options: Mapping[str, JSONValue] | None = None,
    limit: int | None = None,
    repeats: int = 1,
    scorer: str | None = None,
    group_by: Sequence[str] = (),
    concurrency: int | None = None,
    rpm: float | None = None,
    timeout: float | None = None,
    workers: int = 1,
    retry_errors: bool = False,
    overwrite: bool = False,
    api_key_env: str | None = None,
    headers: Iterable[str] = (),
    target: str | None = None,
    media: str | None = None,
    policy: MediaPolicy | None = None,
    changes: Changes | None = None,
    on_error: Callable[[MMPromptError], None] | None = None,
) -> RunReport:
    """Ask a model all requests of a task, and append its replies to a journal as they come.

    A journal that is there is gone on with: rows that have a prediction are not asked again, rows with an error are.

    Args:
        task: a task, or what ``load_task`` takes.
        model: the model's name on the server, the folder of a local model, ``"builtin:shapes"``, or an object with the
            methods of ``mmprompt.run.model.Model``; by default what the task names.
        output: the journal; by default named by dataset and model, in the current folder.
        base_url: the server's address; by default what the task names, else ``MMPROMPT_BASE_URL``.
        options: generation settings that stand in place of the task's, such as ``{"temperature": 0}``.
        limit: reads at most this many rows.
        repeats: how often each row is asked.
        scorer: how predictions are scored; by default the task's ``eval_cfg.scorer``, else ``"choice"`` for rows with
            choices and ``"exact"`` for the others.
        group_by: columns by which scores are grouped too.
        concurrency: the most requests at once; by default the model's own.
        rpm: the most requests that begin in a minute.
        timeout: seconds that one attempt may take.
        workers: threads that decode media.
        retry_errors: asks only rows that stand in the journal with an error.
        overwrite: begins the journal anew.
        api_key_env: the environment variable that holds the server's key, by default ``MMPROMPT_API_KEY``
            (``OPENAI_API_KEY`` for OpenAI's own server).
        headers: further headers as ``NAME=VARIABLE``; the environment variable holds the value.
        target: what the server accepts, by default ``"vllm"`` (``"openai"`` for OpenAI's own server).
        media: how media are sent; see ``Task.requests``, also for ``policy`` and ``changes``.
        policy: which media may be read.
        changes: how media are changed.
        on_error: receives the error of each row that ends without a prediction. The journal has it too.

    Raises:
        TaskError: the journal is in use, was begun with other settings, or no model is given.
        ServerError: every request would fail: the server is not there, or refuses the key or the model.
        MMPromptError: the task or the dataset cannot be read.
        OSError: the journal cannot be written.
    """
    path = os.fspath(task) if isinstance(task, (str, os.PathLike)) else None
    loaded = task if isinstance(task, Task) else load_task(task, policy=policy)
    given = tuple(headers)
    asked = model
    if asked is None or isinstance(asked, str):
        asked = model_for(
            asked,
            base_url,
            config=loaded.config,
            target=target,
            timeout=timeout,
            concurrency=concurrency,
            key_variable=api_key_env,
            headers=given,
        )
    settings = RunSettings(
        options or {}, limit, repeats, workers, concurrency, rpm, retry_errors=retry_errors, group_by=tuple(group_by)
    )
    hooks = Hooks(None if on_error is None else lambda failed, _: on_error(failed.error))
    try:
        return ask_task(
            loaded,
            asked,
            None if output is None else os.fspath(output),
            settings,
            task_path=path if path is not None and is_task_file(path) else None,
            scorer=scorer,
            headers=given,
            overwrite=overwrite,
            media=media,
            policy=policy,
            changes=changes,
            hooks=hooks,
        )
    finally:
        if asked is not model:
            asked.close()


def ask_task(
    task: Task,
    model: Model,
    output: str | None,
    settings: RunSettings,
    *,
    task_path: str | None = None,
    scorer: str | None = None,
    headers: Sequence[str] = (),
    overwrite: bool = False,
    media: str | None = None,
    policy: MediaPolicy | None = None,
    changes: Changes | None = None,
    hooks: Hooks = Hooks(),  # noqa: B008  # immutable
) -> RunReport:
    """Ask a model all requests of a task; see ``run_task``. ``task_path`` is the task's file.

    Raises:
        KeyboardInterrupt: a second ``^C`` came.
    """
    journal = output or journal_name(task, task_path, model.name)
    if settings.retry_errors and not os.path.isfile(journal):
        raise TaskError(f"there is no journal {journal}, so there are no errors to retry", "leave out --retry-errors")
    manifest = manifest_of(
        task,
        path=task_path,
        model=model.name,
        target=model.target,
        options=settings.options,
        scorer=scorer or task.config.scorer,
        limit=settings.limit,
        repeats=settings.repeats,
        headers=dict(item.split("=", 1) for item in headers),
    )
    builder = RequestBuilder(task, model.target, media=media, policy=policy, changes=changes)
    with (
        closing(builder),
        JournalFile(journal, manifest, overwrite=overwrite) as file,
        Interruption(hooks.on_stop) as interruption,
    ):
        runner = Runner(builder, model, file, settings, on_failed=hooks.on_failed, on_row=hooks.on_row)
        return RunReport(journal, *runner.run(interruption))


def journal_name(task: Task, task_path: str | None, model: str) -> str:
    """Return the default name of a journal: the dataset's name and the model's."""
    path = None if task.dataset is None else task.dataset.path
    dataset = os.path.basename(os.path.normpath(task_path or "rows" if path is None or path == "-" else path))
    if dataset.endswith((".gz", ".zst")):
        dataset = os.path.splitext(dataset)[0]
    named = os.path.basename(os.path.normpath(model)) if os.path.isdir(model) else model
    return _NOT_IN_NAMES.sub("_", f"{os.path.splitext(dataset)[0]}-{named}") + ".jsonl"
