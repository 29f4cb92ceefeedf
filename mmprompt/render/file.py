"""``render_file``: the requests of a task as lines of a file, which is what ``mmprompt render -o`` writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

from mmprompt.datasets.output import check_apart, check_output
from mmprompt.datasets.output import output as opened
from mmprompt.datasets.repeated_ids import RepeatedIdError
from mmprompt.errors import MMPromptError, TaskError
from mmprompt.media.changes import Changes
from mmprompt.media.outputs import replacing
from mmprompt.render.renderer import Renderer
from mmprompt.render.request import asked_changes, require_numbers
from mmprompt.render.run import RenderReport, render, unheard
from mmprompt.tasks.load import load_task
from mmprompt.tasks.task import Task

if TYPE_CHECKING:
    from mmprompt.errors.findings import Note
    from mmprompt.media.policy import MediaPolicy
    from mmprompt.render.builder import FailedRow


def render_file(  # noqa: D417  # the arguments of Task.requests are described there
    task: Task | str | os.PathLike[str] | Mapping[str, Any],
    output: str | os.PathLike[str],
    *,
    emit: str = "messages",
    target: str = "vllm",
    media: str | None = None,
    policy: MediaPolicy | None = None,
    changes: Mapping[str, object] | Changes | None = None,
    limit: int | None = None,
    workers: int = 1,
    on_error: Callable[[MMPromptError], None] | None = None,
    on_note: Callable[[Note], object] = unheard,
) -> RenderReport:
    """Write the requests of a task as lines of JSON, as ``mmprompt render TASK -o OUTPUT`` does.

    The arguments that are not listed here are those of ``Task.requests``.

        report = render_file("vqa.jsonl", "requests.jsonl", target="openai")

    Args:
        task: a task, or what ``load_task`` takes.
        output: the file that is written. It appears when it is complete; an older one stays until then.
        emit: ``"messages"``, ``"prompt"`` (before the meta template), ``"string"`` (after it) or ``"batch"`` (OpenAI).
        limit: reads at most this many rows.
        on_error: receives the error of each row that cannot be sent, and the row is left out. It also receives each id
            that a row before had. Without it the first error of a row is raised, and nothing is written.
        on_note: receives what is accepted but odd: of the media of a row as it is written, of all rows at the end.

    Returns:
        How many rows were rendered and left out, and how many ids stood before.

    Raises:
        TaskError: the task, ``emit``, a number or a change is wrong, or the output is a folder or one of the inputs.
        TargetError: the target is unknown, or has no such lines.
        MMPromptError: without ``on_error``, the first row that cannot be sent, with its place.
        OSError: the output cannot be written.
    """
    require_numbers(workers, limit)
    path = os.fspath(output)
    loaded = _loaded(task, path, policy)
    asked = _asked(loaded, emit, changes or {})
    renderer = Renderer(loaded, emit=emit, target=target, media=media, policy=policy, changes=asked)
    with closing(renderer), opened(path) as writer:
        rows, heard = loaded.samples(), partial(_heard, on_error)
        report = render(renderer, rows, writer, limit=limit, workers=workers, on_error=heard, on_note=on_note)
        writer.discarded = bool(report.failed and not report.rendered)
    for note in loaded.notes():
        on_note(note)
    return report


def _loaded(task: Task | str | os.PathLike[str] | Mapping[str, Any], output: str, policy: MediaPolicy | None) -> Task:
    """Return the task, none of whose files is the output."""
    check_output(output)
    with replacing(output):
        loaded = task if isinstance(task, Task) else load_task(task, policy=policy)
    check_apart(output, loaded.dataset, loaded.train)
    return loaded


def _asked(task: Task, emit: str, changes: Mapping[str, object] | Changes) -> Changes:
    if emit != "prompt":
        return asked_changes(task, changes)
    if changes and changes != Changes():
        raise TaskError("changes of media with emit 'prompt'", "leave them out: a prompt holds its media unchanged")
    return Changes()


def _heard(on_error: Callable[[MMPromptError], None] | None, failed: FailedRow, _number: int | None) -> None:
    if on_error is not None:
        on_error(failed.error)
    elif not isinstance(failed.error, RepeatedIdError):
        raise failed.error
