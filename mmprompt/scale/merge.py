"""Puts the outputs of rendered shards together, in order, as one run would have written them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from mmprompt.datasets.repeated_ids import RepeatedIds, keys_in
from mmprompt.datasets.span import Shard, rows_from
from mmprompt.datasets.store_url import StoreURL, object_state
from mmprompt.errors import Where
from mmprompt.errors.findings import Note
from mmprompt.render.builder import FailedRow
from mmprompt.render.faults import RowFault, error_of
from mmprompt.render.renderer import Renderer
from mmprompt.render.run import OnError, RowWriter, report_repeats
from mmprompt.scale.reports import EVENT, HINT
from mmprompt.scale.work_folder import WorkFolder
from mmprompt.targets.json_files import checked_json
from mmprompt.tasks.media_slots import UnfilledSlotError
from mmprompt.tasks.shard_task import SeenRows
from mmprompt.tasks.task import Task

_BLOCK = 1 << 20


class Listeners(NamedTuple):
    """Who receives what a merge gives: faults and notes of rows, warnings of the run, and numbers of rows."""

    on_fault: Callable[[RowFault], object]
    on_note: Callable[[Note], object]
    on_warning: Callable[[Note], object]
    on_rows: Callable[[int], object]


class RenderMerge:
    """Merges rendered shards. ``rows`` counts the rows merged so far, ``taken`` the answers taken from chats."""

    def __init__(self, task: Task, folder: WorkFolder, listeners: Listeners) -> None:
        self.rows = self.taken = 0
        self._folder, self._tell = folder, listeners
        self._seen = SeenRows(task)
        self._warned: set[str] = set()
        self._numbers: list[int] = []

    def add(self, report: dict[str, Any], writer: RowWriter | None = None) -> None:
        """Merge the next shard.

        Raises:
            MMPromptError: the error that ended the reading of this shard; those before it are merged.
        """
        number = report["number"]
        self._numbers.append(number)
        for kind, code, words in report["warnings"]:
            if kind not in self._warned:
                self._warned.add(kind)
                self._tell.on_warning(Note(code, words))
        with self._folder.opened(number, "events") as events:
            for line in events:
                self._replay(checked_json(line, EVENT, events.name, HINT))
        if writer is not None:
            with self._folder.opened(number, "lines") as lines:
                while block := lines.read(_BLOCK):
                    writer.write([block])
        self.rows += report["rows"]
        self.taken += report.get("taken", 0)
        self._tell.on_rows(report["rows"])
        self._seen.add(report["seen"])
        if (fault := report.get("fault")) is not None:
            raise error_of(fault)

    def _replay(self, event: list[Any]) -> None:
        if isinstance(event[0], list):
            fault = RowFault.from_data(event)
            self._tell.on_fault(fault._replace(read=fault.read + self.rows))
        else:
            code, what, hint, where, medium = event
            self._tell.on_note(Note(code, what, hint, Where(*where), medium))

    def finish(self, renderer: Renderer, on_error: OnError, *, strict: bool) -> int:
        """Report what shows only after all rows, and return how many ids stood before.

        Raises:
            UnfilledSlotError: with ``strict``, the first media slot that no row fills.
        """
        for error in self._seen.unfilled_slots():
            on_error(FailedRow(error, error), None)
            if strict:
                raise error
        return report_repeats(self.repeats(), renderer, on_error)

    def unfilled_slots(self) -> Iterator[UnfilledSlotError]:
        """Yield an error for each media slot that no row fills."""
        return self._seen.unfilled_slots()

    def repeats(self) -> Iterator[tuple[int, int]]:
        """Yield the places of each id that stood before, and of its first row."""
        with RepeatedIds() as ids:
            for number in self._numbers:
                with self._folder.opened(number, "ids") as file:
                    for keys, places in keys_in(file):
                        ids.add_keys(keys, places)
            yield from ids.repeats()


def in_order(reports: Iterable[dict[str, Any]], numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield reports in the order of ``numbers``, each as soon as those before it are there."""
    waiting: dict[int, dict[str, Any]] = {}
    due = iter(numbers)
    next_number = next(due, None)
    for report in reports:
        waiting[report["number"]] = report
        while next_number in waiting:
            yield waiting.pop(next_number)
            next_number = next(due, None)


def chosen_shards(shards: Sequence[Shard], rows: slice, limit: int | None) -> Iterator[tuple[int, Shard, int | None]]:
    """Yield the number of each shard that has to be read, the shard, and how many of its rows are read at most.

    ``rows`` are those of the dataset that the task takes; at most ``limit`` of them are read. None is no limit.
    """
    left = limit
    for number, shard in enumerate(shards):
        count, first = shard["rows"], shard["first"]
        if count is None:
            yield number, shard, limit
            continue
        own = rows_from(rows, first)
        end = first + count if rows.stop is None else min(rows.stop, first + count)
        if number and ((rows.stop is not None and first >= rows.stop) or left == 0):
            return
        chosen = len(range(own.start or 0, end, own.step or 1))
        ends = left is not None and left <= chosen
        yield number, shard, left if ends else None
        left = None if left is None else max(left - chosen, 0)


def inputs_of(task: Task, *others: str) -> dict[str, object]:
    """Return what a run depends on: the settings of its task, and the sizes and times of its files and of ``others``.

    Of an object it is what its store says of it. Media are not looked at.
    """
    datasets = [d for d in (task.dataset, task.train) if d is not None]
    names = [*others, *[file for dataset in datasets for file in dataset.files]]
    found: dict[str, object] = {"task": sha256(_settled(task.config).encode()).hexdigest()}
    for name in dict.fromkeys(names):
        if isinstance(name, StoreURL):
            found[f"file {name}"] = object_state(name)
        elif os.path.isfile(name):
            stat = os.stat(name)
            found[f"file {os.path.abspath(name)}"] = [stat.st_size, stat.st_mtime_ns]
    return found


def _settled(value: object) -> str:
    """Return settings as text that is the same in every process."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_settled(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(map(_settled, value))) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_settled, value)) + "]"
    if value is None or isinstance(value, (str, bytes, int, float, slice)):
        return repr(value)
    return getattr(value, "__qualname__", type(value).__qualname__)  # a class, a function or an object of the caller
