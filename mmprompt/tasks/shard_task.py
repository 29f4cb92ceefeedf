"""A task for a part of its rows, and what these rows add to the notes of the whole."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from typing import Any, TypedDict

from mmprompt.datasets.span import Shard, rows_from
from mmprompt.tasks.media_slots import SlotTally, UnfilledSlotError, unfilled_slots
from mmprompt.tasks.task import Task


class Seen(TypedDict):
    """What the rows of a shard add to a task's notes, as plain data.

    ``unfilled`` are the media columns that no row had, None if not all rows were read; ``columns`` all columns.
    """

    remarks: list[Any]
    rows: dict[str, Any]
    unfilled: list[str] | None
    columns: list[str]


def rows_of(task: Task) -> slice:
    """Return which rows of its dataset a task takes, by their numbers; of a shard those from its first row on."""
    return rows_from(task.config.test_range, 0 if task.dataset is None else task.dataset.first)


def shard_task(task: Task, shard: Shard) -> Task:
    """Return a task for the rows of a shard of its dataset. Examples come from the whole dataset."""
    if task.dataset is None:
        return task
    part = copy.copy(task)
    tally = None if shard["rows"] is None else SlotTally(is_first=not shard["first"])
    vars(part).update(dataset=task.dataset.over(shard), row_notes=copy.copy(task.row_notes), tally=tally)
    return part


def seen_by(task: Task) -> Seen:
    """Return what the rows of a shard that were read add to the notes."""
    tally, remarks = task.tally, [] if task.dataset is None else task.dataset.remarks.state
    unfilled, columns = (None, []) if tally is None else (tally.unfilled, tally.columns)
    return {"remarks": remarks, "rows": task.row_notes.state, "unfilled": unfilled, "columns": columns}


class SeenRows:
    """Adds up what the rows of all shards add to the notes of a task, in the order of shards."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._unfilled: Collection[str] | None = task.slots[0]
        self._columns: set[str] = set()

    def add(self, seen: Seen) -> None:
        """Add what the rows of the next shard add."""
        if self._task.dataset is not None:
            self._task.dataset.remarks.add_state(seen["remarks"])
        self._task.row_notes.add_state(seen["rows"])
        self._columns.update(seen["columns"])
        if self._unfilled is not None and (left := seen.get("unfilled")) is not None:
            self._unfilled = [name for name in self._unfilled if name in left]
        else:
            self._unfilled = None

    def unfilled_slots(self) -> Iterator[UnfilledSlotError]:
        """Yield an error for each media column that no row of any shard had, if all rows were read."""
        if self._unfilled and self._columns:
            yield from unfilled_slots(self._unfilled, self._columns, self._task.slots[1])
