"""All requests of a task up front, so that all faults are reported before a runner sends anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Union

from mmprompt._log import log
from mmprompt.errors import DatasetError, MMPromptError, TaskError
from mmprompt.errors.findings import Finding
from mmprompt.render.request import Request
from mmprompt.targets.exact_json import dumps
from mmprompt.targets.limits import require_chat_target
from mmprompt.tasks.files import is_task_file
from mmprompt.tasks.grants import Grants
from mmprompt.tasks.load import load_file
from mmprompt.tasks.media import task_policy
from mmprompt.tasks.task import Task

_SHOWN = 20
"""How many errors a message lists."""


MediaRoot = Union[str, Sequence[str], None]
"""A folder that media may lie in, beside the dataset's own, or several. It is the caller's permission."""


def folders_of(media_root: MediaRoot) -> list[str]:
    """Return the folders that ``media_root`` names."""
    return [media_root] if isinstance(media_root, str) else list(media_root or ())


def open_task(
    path: str,
    dataset: str | None = None,
    train: str | None = None,
    roots: Sequence[str] = (),
    abbr: str | None = None,
) -> Task:
    """Return the task of a task file, or the default task of a dataset file.

    ``dataset`` replaces the rows that the task file names, ``train`` its examples. ``roots`` are folders that the
    task file may name for its media. ``abbr`` chooses one of the datasets of a runner's config.

    Raises:
        MMPromptError: the file cannot be read, or ``path`` is a dataset and ``dataset`` is given too.
    """
    given = {name: value for name, value in (("path", dataset), ("train", train)) if value is not None}
    if given and not is_task_file(path):
        raise TaskError("dataset and train are for a task file", "give the dataset alone, or a task file")
    return load_file(path, given or None, Grants(roots=tuple(roots)), abbr=abbr)


def task_requests(
    task: Task,
    target: str = "vllm",
    *,
    roots: Sequence[str] = (),
    check: Callable[[Request], None] | None = None,
    skip_bad: bool = False,
) -> list[Request]:
    """Return the requests of a task. Each row or turn gives one; all their media are in memory.

    Args:
        task: the task.
        target: a target that accepts OpenAI's messages.
        roots: folders that media may lie in, beside the task's own.
        check: raises an MMPromptError for a request that the runner cannot send.
        skip_bad: leaves out the rows that cannot be sent, with a warning for each.

    Raises:
        TaskError: the task compares labels, or later turns need the replies to earlier ones.
        DatasetError: a row cannot be sent or repeats an id, or the dataset has no rows.
        TargetError: the target is unknown, or has another wire form.
    """
    require_chat_target(target, "this runner")
    task.require_one_reply("this runner")
    found: dict[str, Request] = {}
    errors: list[MMPromptError] = []
    for request in task.requests(target, policy=task_policy(task, roots=roots), on_error=errors.append):
        try:
            name = str(request_name(request))
            if name in found:
                raise DatasetError(f"two rows have the id {name}", "give each row its own id", code="MM009")
            if check is not None:
                check(request)
            found[name] = request
        except MMPromptError as error:
            errors.append(error.located(**request.where._asdict()))
    for note in task.notes():
        log.warning("%s", note.finding)
    for left_out in errors if skip_bad else ():
        log.warning("left out: %s", Finding.of(left_out))
    if errors and not skip_bad:
        raise _refused(errors)
    if not found:
        hint = "correct the rows that were left out" if errors else "give the dataset rows"
        raise DatasetError("there is no row to ask", hint, code="MM014")
    return list(found.values())


def _refused(errors: Sequence[MMPromptError]) -> DatasetError:
    """Return one error that lists the first of these, one a line."""
    count, hint = (
        ("1 request", "correct its row") if len(errors) == 1 else (f"{len(errors)} requests", "correct their rows")
    )
    lines = "\n".join(f"  {Finding.of(error)}" for error in errors[:_SHOWN])
    more = f"\n  … and {len(errors) - _SHOWN} more" if len(errors) > _SHOWN else ""
    return DatasetError(f"{count} cannot be made; {hint}, or pass skip_bad=true\n{lines}{more}")


def request_name(request: Request) -> str | int:
    """Return a runner's id for a request: the row's id, for a turn with ``#`` and its number after it."""
    given = request.id
    if request.turn is None and isinstance(given, int) and not isinstance(given, bool):
        return given
    text = as_text(given)
    return text if request.turn is None else f"{text}#{request.turn}"


def answer_texts(request: Request) -> list[str]:
    """Return the right answers of a request as texts."""
    return [as_text(answer) for answer in request.answers]


def as_text(value: object) -> str:
    """Return a text as it is, and any other value as JSON."""
    return value if isinstance(value, str) else dumps(value).decode()
