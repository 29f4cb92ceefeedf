"""All requests of a task up front, so that all faults are reported before a runner sends anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Union

from mmprompt._log import log
from mmprompt.errors import DatasetError, MMPromptError, TaskError
from mmprompt.errors.findings import Finding
from mmprompt.media.policy import MediaPolicy
from mmprompt.render.request import Request
from mmprompt.targets.exact_json import dumps
from mmprompt.targets.limits import require_chat_target
from mmprompt.tasks.files import TypedPath, is_task_file
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
    *,
    grants: Grants | None = None,
) -> Task:
    """Return the task of a task file, or the default task of a dataset file.

    ``dataset`` replaces the rows that the task file names, ``train`` its examples. ``roots`` are folders that the
    task file may name for its media; ``grants``, in place of it, is all that the task file may name. ``abbr`` chooses
    one of the datasets of a runner's config. A Python task is executed: ``path`` is what the caller typed.

    Raises:
        MMPromptError: the file cannot be read, or ``path`` is a dataset and ``dataset`` is given too.
    """
    given = {name: value for name, value in (("path", dataset), ("train", train)) if value is not None}
    if given and not is_task_file(path):
        raise TaskError("dataset and train are for a task file", "give the dataset alone, or a task file")
    return load_file(TypedPath(path), given or None, grants or Grants(roots=tuple(roots)), abbr=abbr)


def task_requests(
    task: Task,
    target: str = "vllm",
    *,
    roots: Sequence[str] = (),
    policy: MediaPolicy | None = None,
    changes: Mapping[str, object] | None = None,
    check: Callable[[Request], None] | None = None,
    skip_bad: bool = False,
    answered: bool | None = False,
) -> list[Request]:
    """Return the requests of a task. Each row or turn gives one; all their media are in memory.

    Args:
        task: the task.
        target: a target that accepts OpenAI's messages.
        roots: folders that media may lie in, beside the task's own.
        policy: which media may be read, in place of the task's policy and ``roots``.
        changes: how media are changed, as in ``Task.requests``.
        check: raises an MMPromptError for a request that the runner cannot send.
        skip_bad: leaves out the rows that cannot be sent, with a warning for each.
        answered: each row must have an answer; None: if any row has one.

    Raises:
        TaskError: the task compares labels, or later turns need the replies to earlier ones.
        DatasetError: a row cannot be sent or repeats an id, or the dataset has no rows.
        TargetError: the target is unknown, or has another wire form.
    """
    require_chat_target(target, "this runner")
    task.require_one_reply("this runner")
    found: dict[str, Request] = {}
    errors: list[MMPromptError] = []
    policy = policy or task_policy(task, roots=roots)
    for request in task.requests(target, policy=policy, changes=changes, on_error=errors.append):
        try:
            name = str(request_name(request))
            if name in found:
                raise DatasetError(f"two rows have the id {name}", "give each row its own id", code="MM009")
            if check is not None:
                check(request)
            found[name] = request
        except MMPromptError as error:
            errors.append(error.located(**request.where._asdict()))
    if answered or (answered is None and any(request.answers for request in found.values())):
        errors += [_unanswered(found.pop(name), task) for name, r in [*found.items()] if not r.answers]
    _report(task, errors, skip_bad=skip_bad)
    if not found:
        hint = "correct the rows that were left out" if errors else "give the dataset rows"
        raise DatasetError("there is no row to ask", hint, code="MM014")
    return list(found.values())


def _report(task: Task, errors: Sequence[MMPromptError], *, skip_bad: bool) -> None:
    """Log the notes of a task, and the errors if their rows are left out; else raise them as one."""
    for note in task.notes():
        log.warning("%s", note.finding)
    for left_out in errors if skip_bad else ():
        log.warning("left out: %s", Finding.of(left_out))
    if errors and not skip_bad:
        raise _refused(errors)


def _unanswered(request: Request, task: Task) -> DatasetError:
    what, hint = "no answer to score against", f"give '{task.output_column}'"
    return DatasetError(what, hint, code="MM701").located(**request.where._asdict())


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
