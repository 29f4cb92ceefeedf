"""What is shown: a task under a title, and what a journal says of its rows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Union

from mmprompt.tasks.load import dataset_task, load_task
from mmprompt.tasks.task import Task
from mmprompt.viewer.replies import Replies, is_journal, task_of_journal

Path = Union[str, "os.PathLike[str]"]
Source = Union[Task, Path, Sequence[Path], Mapping[str, Any]]
"""A task, the name of a task file, a dataset or a journal, several files of one dataset, or a task as a mapping."""


class Exhibit(NamedTuple):
    """A task under a title, and what a journal says of its rows."""

    title: str
    task: Task
    replies: Replies | None = None

    def told(self, row: int | None) -> list[dict[str, Any]]:
        """Return what the journal says of a row, by its 0-based number; empty without a journal."""
        return [] if self.replies is None or row is None else self.replies.of(row)


def exhibit_of(source: Source, journal: Path | None = None) -> Exhibit:
    """Return the side of a page that shows a source, with the replies of a journal.

    Raises:
        TaskError: the source is no task, or the journal is none.
        DatasetError: the dataset cannot be opened.
    """
    name = os.fspath(source) if isinstance(source, (str, os.PathLike)) else None
    if name is not None and journal is None and is_journal(name):
        return Exhibit(os.path.basename(name), task_of_journal(name), Replies(name))
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
