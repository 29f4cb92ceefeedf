"""The stream behind ``Task.requests``: every row of a task as the requests it gives, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing

from mmprompt.datasets.choices import choices_of
from mmprompt.errors import MMPromptError, TaskError, nearest, shown
from mmprompt.media.changes import Changes
from mmprompt.media.policy import MediaPolicy
from mmprompt.render.answers import RowAnswers
from mmprompt.render.builder import FailedRow, RequestBuilder, prepared_rows
from mmprompt.render.request import Request
from mmprompt.render.settings import request_settings
from mmprompt.tasks.config import CHANGE_KEYS
from mmprompt.tasks.media import task_changes
from mmprompt.tasks.task import Task


def task_requests(
    task: Task,
    target: str = "vllm",
    *,
    media: str | None = None,
    policy: MediaPolicy | None = None,
    changes: Mapping[str, object] | Changes | None = None,
    workers: int = 1,
    on_error: Callable[[MMPromptError], None] | None = None,
) -> Iterator[Request]:
    """Yield the requests of a task; see ``Task.requests``."""
    if type(workers) is not int or workers < 1:
        raise TaskError(f"workers is {workers!r}", "give 1 or more")
    asked = changes if changes is None or isinstance(changes, Changes) else _asked_changes(task, changes)
    builder = RequestBuilder(task, target, media=media, policy=policy, changes=asked)
    return _stream(builder, workers, on_error)


def _asked_changes(task: Task, changes: Mapping[str, object]) -> Changes:
    """Return the changes of a task with these, named as in its ``media`` section, laid over them.

    Raises:
        TaskError: a key is no change, or its value is wrong.
    """
    for key in changes:
        if key not in CHANGE_KEYS:
            raise TaskError(f"unknown change {shown(key)}", nearest(key, CHANGE_KEYS))
    return task_changes(task, **{CHANGE_KEYS[key]: value for key, value in changes.items()})


def _stream(
    builder: RequestBuilder, workers: int, on_error: Callable[[MMPromptError], None] | None
) -> Iterator[Request]:
    answers = RowAnswers(builder.task)
    settings = request_settings(builder.task, builder.target)
    with closing(builder), prepared_rows(builder, builder.task.samples(), workers) as prepared:
        for made in prepared:
            if isinstance(made, FailedRow):
                if on_error is None:
                    raise made.error
                on_error(made.error)
                continue
            sample = made.row
            choices = choices_of(sample.columns)
            line = (sample.file, sample.line)
            for wire in made.requests:
                yield Request(sample.id, wire, settings, answers.of(sample, wire.turn), choices, line)
