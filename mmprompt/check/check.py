"""``check_dataset``: the findings of a dataset or task, in Python."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Union

from mmprompt.check.checker import Checker, dataset_fault, read_against
from mmprompt.check.selection import Selection
from mmprompt.check.store import Store
from mmprompt.datasets.read import Dataset, open_dataset
from mmprompt.errors import DatasetError, expect
from mmprompt.errors.findings import Finding
from mmprompt.media.policy import MediaPolicy
from mmprompt.tasks.load import dataset_task, load_task
from mmprompt.tasks.task import Task

Path = Union[str, "os.PathLike[str]"]
Source = Union[Task, Path, Iterable[Path], Mapping[str, Any]]
"""A task, the name of a task file or a dataset, several files of one dataset, or a task as a mapping."""

Codes = Union[str, Sequence[str]]
"""Codes or beginnings of codes: ``"MM2"``, or several."""


def check_dataset(
    source: Source,
    *,
    select: Codes = (),
    ignore: Codes = (),
    extend_select: Codes = (),
    target: str | None = None,
    policy: MediaPolicy | None = None,
    decode: bool = True,
    workers: int = 1,
    limit: int | None = None,
    against: Path | None = None,
) -> Iterator[Finding]:
    """Yield what is wrong or odd in a dataset or task: for each row in order, then for the dataset as a whole.

    Args:
        source: the dataset or task.
        select: the codes to tell; by default all errors and warnings. ``"ALL"`` is every code.
        ignore: codes not to tell.
        extend_select: codes to tell too.
        target: the target whose limits hold, such as ``"openai"``; by default what all targets refuse is told.
        policy: which media may be read; by default those below the dataset's folder, as the task says.
        decode: look inside media.
        workers: threads that check rows, each with one decoding process.
        limit: the most rows to read.
        against: another dataset, such as the training set, that must not hold the same rows.

    Raises:
        TaskError: a code is unknown, or the task is wrong.
        TargetError: the target is unknown.
        DatasetError: ``against`` cannot be read.
    """
    selection = Selection(
        *[[codes] if isinstance(codes, str) else list(codes) for codes in (select, ignore, extend_select)]
    )
    try:
        task = _task(source, policy)
    except DatasetError as error:
        yield from [fault for fault in (dataset_fault(error, _name(source)),) if fault.code in selection]
        return
    with (
        Store() as store,
        closing(Checker(task, target, policy=policy, decode=decode, codes=selection, limit=limit)) as checker,
    ):
        if against is not None:
            read_against(task, _other(against, task), store, policy or checker.builder.media.reader.policy)
        for report in checker.check(store, workers):
            yield from report.findings


def _task(source: Source, policy: MediaPolicy | None) -> Task:
    if isinstance(source, Task):
        return source
    if isinstance(source, (str, os.PathLike, Mapping)):
        return load_task(source, policy=policy)
    paths = list(source)  # it may be an iterator, such as that of a glob
    for path in paths:
        expect(path, (str, os.PathLike), "the name of a file", 'give load_task({}, {"rows": rows}) to check rows')
    return dataset_task(paths, policy=policy)


def _name(source: Source) -> str | None:
    """Return the path of the dataset that cannot be opened."""
    first = source[0] if isinstance(source, (list, tuple)) and source else source
    return os.fspath(first) if isinstance(first, (str, os.PathLike)) else None


def _other(path: Path, task: Task) -> Dataset:
    section = task.config.dataset
    other = open_dataset(
        path,
        columns=section.get("columns"),
        key=section.get("key"),
        encoding=section.get("encoding"),
        templates=task.assembly is not None,
    )
    other.change = None if task.dataset is None else copy.copy(task.dataset.change)
    return other
