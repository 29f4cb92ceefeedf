"""A task's rows made ready for a runner: each one request, with all that is wrong known before the first is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from mmprompt._log import log
from mmprompt.datasets.sample import Row
from mmprompt.errors import DatasetError, MMPromptError, TargetError, TaskError
from mmprompt.render.renderer import Renderer
from mmprompt.targets.exact_json import dumps
from mmprompt.targets.limits import limits
from mmprompt.tasks.files import is_task_file
from mmprompt.tasks.load import dataset_task, load_task
from mmprompt.tasks.media import task_policy
from mmprompt.tasks.task import Task, at

_SHOWN = 20
"""How many errors a message lists."""


class Request(NamedTuple):
    """What a model is asked for a sample, or for one turn of it.

    ``id`` keeps its type; that of a turn is text that ends in ``#`` and its number. ``messages`` are in the form of
    the target, each medium's text a ``Payload``. ``answers`` are the texts that are right, none if the row has none.
    ``dropped`` examples were left out, since the prompt would have grown too long.
    """

    id: str | int
    messages: list[dict[str, Any]]
    answers: tuple[str, ...] = ()
    dropped: int = 0


def open_task(path: str, dataset: str | None = None, train: str | None = None) -> Task:
    """Return the task in a task file, or the default one of a dataset file.

    ``dataset`` takes the place of the task file's own rows, ``train`` of its examples.

    Raises:
        MMPromptError: it cannot be read, or ``dataset`` goes with a dataset.
    """
    if is_task_file(path):
        given = {"path": dataset, "train": train} if train is not None else {"path": dataset}
        return load_task(path, None if dataset is None else given)
    if dataset is not None or train is not None:
        raise TaskError("dataset and train are for a task file", "give the dataset alone, or a task file")
    return dataset_task(path)


def ready_requests(
    task: Task,
    target: str = "vllm",
    *,
    roots: Sequence[str] = (),
    check: Callable[[Request], None] | None = None,
    skip_bad: bool = False,
) -> list[Request]:
    """Return a request for each row, or each turn, of a task for generation; their media are read and held.

    Args:
        task: the task.
        target: the wire form and its limits, one that writes messages as OpenAI does.
        roots: folders that media may lie in, beside the task's own.
        check: raises an MMPromptError for what the runner cannot carry.
        skip_bad: leave out what cannot be asked, with a warning each.

    Raises:
        TaskError: the task compares labels, or later turns need the replies of earlier ones.
        DatasetError: rows that cannot be asked, or whose id came before, the first of them by name; or no row at all.
        TargetError: an unknown target, or one of another wire form.
    """
    if limits(target).wire != "openai":
        raise TargetError(
            f"this runner writes OpenAI's form, and {target} has another", "use openai, vllm or their like"
        )
    if task.mode == "ppl" or (task.assembly is not None and task.assembly.needs_replies):
        hint = "use GenInferencer, or infer_mode last or every_with_gt"
        raise TaskError("this runner asks once for each sample, and the task needs more than a reply to each", hint)
    ready: dict[str, Request] = {}
    errors: list[MMPromptError] = []
    with closing(Renderer(task, target=target, policy=task_policy(task, roots=roots))) as renderer:
        for row, made in _requests(task, renderer, check):
            if isinstance(made, MMPromptError):
                errors.append(made)
            elif str(made.id) in ready:
                again = DatasetError(f"the id {made.id} comes again", "give each row an id of its own")
                errors.append(at(again, row))  # type: ignore[arg-type]  # a row that was rendered is a sample
            else:
                ready[str(made.id)] = made
    for note in [*task.notes(), *(f"left out: {error}" for error in errors if skip_bad)]:
        log.warning("%s", note)
    if errors and not skip_bad:
        raise _refused(errors)
    if not ready:
        hint = "mend those that were left out" if errors else "give the dataset rows"
        raise DatasetError("there is no row to ask", hint)
    return list(ready.values())


def _refused(errors: Sequence[MMPromptError]) -> DatasetError:
    """Return the errors as one, the first of them line by line."""
    count, hint = ("1 request", "mend it") if len(errors) == 1 else (f"{len(errors)} requests", "mend them")
    lines = "\n".join(f"  {error}" for error in errors[:_SHOWN])
    more = f"\n  … and {len(errors) - _SHOWN} more" if len(errors) > _SHOWN else ""
    return DatasetError(f"{count} cannot be made; {hint}, or skip_bad=true\n{lines}{more}")


def _requests(
    task: Task, renderer: Renderer, check: Callable[[Request], None] | None
) -> Iterator[tuple[Row, Request | MMPromptError]]:
    for row in task.samples():
        prepared = renderer.prepare(row)
        if prepared.error is not None:
            yield row, prepared.error
        for record in prepared.records:
            answers = _answers(prepared.row.columns.get(task.output_column))  # type: ignore[union-attr]  # a sample
            request = Request(
                _id(record["id"], record.get("turn")), record["messages"], answers, record.get("dropped_examples", 0)
            )
            try:
                if check is not None:
                    check(request)
            except MMPromptError as error:
                yield row, at(error, row)  # type: ignore[arg-type]  # likewise
            else:
                yield row, request


def _id(given: object, turn: int | None) -> str | int:
    if turn is None and isinstance(given, int) and not isinstance(given, bool):
        return given
    text = _text(given)
    return text if turn is None else f"{text}#{turn}"


def _answers(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    values = value if isinstance(value, (list, tuple)) else [value]
    return tuple([_text(item) for item in values])


def _text(value: object) -> str:
    return value if isinstance(value, str) else dumps(value).decode()
