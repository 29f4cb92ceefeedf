"""What is shown: a task under a title, and what a journal says of its rows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Union

from mmprompt.errors import TaskError
from mmprompt.errors.findings import Note
from mmprompt.tasks.load import dataset_task, load_task
from mmprompt.tasks.task import Task
from mmprompt.viewer.journal_task import is_held, task_of_journal
from mmprompt.viewer.replies import Replies, is_journal

Path = Union[str, "os.PathLike[str]"]
Source = Union[Task, Path, Sequence[Path], Mapping[str, Any]]
"""A task, the name of a task file, a dataset or a journal, several files of one dataset, or a task as a mapping."""


class Exhibit(NamedTuple):
    """A task under a title, and what a journal says of its rows."""

    title: str
    task: Task
    replies: Replies | None = None

    @property
    def notes(self) -> Sequence[Note]:
        """Why the rows are shown without their prompts, if they are those of a journal alone."""
        return self.task.notes() if is_held(self.task) else ()

    def told(self, row: int | None) -> list[dict[str, Any]]:
        """Return what the journal says of a row, by its 0-based number; empty without a journal."""
        return [] if self.replies is None or row is None else self.replies.of(row)


def journal_exhibit(path: str, dataset: str | None = None) -> Exhibit:
    """Return the side of a page that shows a journal. ``dataset`` holds its rows, if the caller names them.

    Raises:
        TaskError: the file is no journal, or its manifest names a Python task.
        DatasetError: the rows cannot be read.
    """
    replies = Replies(path)
    return Exhibit(os.path.basename(path), task_of_journal(path, replies, dataset), replies)


def exhibit_of(source: Source, journal: Path | None = None, dataset: Path | None = None) -> Exhibit:
    """Return the side of a page that shows a source, with the replies of a journal.

    ``dataset`` holds the rows of a source that is a journal, where its manifest names none that may be opened.

    Raises:
        TaskError: the source is no task, or the journal is none.
        DatasetError: the dataset cannot be opened.
    """
    name = os.fspath(source) if isinstance(source, (str, os.PathLike)) else None
    if name is not None and journal is None and is_journal(name):
        return journal_exhibit(name, None if dataset is None else os.fspath(dataset))
    if dataset is not None:
        raise TaskError("dataset= holds the rows of a journal, and this is none", "remove dataset=")
    if isinstance(source, Task):
        task = source
    elif isinstance(source, (str, os.PathLike, Mapping)):
        task = load_task(source)
    else:
        task = dataset_task(source)
    title = _title(task) if name is None else os.path.basename(name.rstrip("/"))
    return Exhibit(title, task, None if journal is None else Replies(os.fspath(journal)))


def _title(task: Task) -> str:
    return "rows" if task.dataset is None or task.dataset.path is None else os.path.basename(task.dataset.path)
