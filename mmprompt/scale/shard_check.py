"""Checks the rows of one shard, and keeps what it finds in a store of its own."""

from __future__ import annotations

from contextlib import closing
from typing import Any, NamedTuple

from mmprompt.check.checker import Checker, RowsFound
from mmprompt.check.selection import Selection
from mmprompt.check.store import Store
from mmprompt.datasets.crash_record import CrashRecord
from mmprompt.datasets.span import Shard
from mmprompt.errors.findings import Finding
from mmprompt.media.policy import MediaPolicy
from mmprompt.scale.work_folder import WorkFolder
from mmprompt.tasks.shard_task import SeenRows, seen_by, shard_task
from mmprompt.tasks.task import Task

KINDS = ("store",)


class CheckSpec(NamedTuple):
    """What ``check_shard`` needs. It pickles.

    ``target``, ``policy``, ``decode``, ``codes`` and ``thumbnails`` are as in ``Checker``; the others as in
    ``RenderSpec``.
    """

    task: Task
    shard: Shard
    number: int
    folder: str
    limit: int | None = None
    target: str | None = None
    policy: MediaPolicy | None = None
    decode: bool = True
    codes: Selection | None = None
    thumbnails: bool = False
    threads: int = 1
    session: int = 0

    def checker(self, task: Task) -> Checker:
        """Return what checks the rows of a task as this says."""
        return Checker(
            task,
            self.target,
            policy=self.policy,
            decode=self.decode,
            codes=self.codes or Selection(),
            limit=self.limit,
            thumbnails=self.thumbnails,
        )


def check_shard(spec: CheckSpec) -> dict[str, Any]:
    """Check the rows of a shard, keep the findings in the work folder, and return the shard's report: plain data."""
    folder, number, task = WorkFolder(spec.folder), spec.number, shard_task(spec.task, spec.shard)
    with (
        CrashRecord(folder.file(number, "row"), spec.session) as record,
        folder.named(number, "store") as path,
        Store(path) as store,
        closing(spec.checker(task)) as checker,
    ):
        for _ in checker.check_rows(store, spec.threads, record.rows):
            record.done(store.progress.rows)
        store.save(store.progress, now=True)
        found, progress = checker.rows_found, store.progress
    report = {"shard": spec.shard, "rows": progress.rows, "items": progress.items, "fault": None, "found": found}
    report = folder.save_report(number, {**report, "seen": seen_by(task)}, KINDS)
    record.remove()
    return report


class CheckMerge:
    """Puts the stores of checked shards into one, in order."""

    def __init__(self, checker: Checker, store: Store, folder: WorkFolder) -> None:
        self._checker, self._store, self._folder = checker, store, folder
        self._seen = SeenRows(checker.task)
        self._whole = True

    def add(self, report: dict[str, Any]) -> list[Finding]:
        """Merge the next shard, and return its findings. After one whose reading an error ended, nothing is added."""
        if not self._whole:
            return []
        codes, shared, fault = report["found"]
        found = RowsFound(codes, shared, [Finding(*each) for each in fault])
        with Store(self._folder.file(report["number"], "store"), resume=True) as shard:
            findings = self._checker.add(self._store, shard, found).findings
        self._seen.add(report["seen"])
        self._whole = not fault
        items, rows = self._store.progress.items + report["items"], self._store.progress.rows + report["rows"]
        self._store.save(self._store.progress._replace(items=items, rows=rows))
        return findings

    def finish(self) -> list[Finding]:
        """Check the whole dataset, and return what was found."""
        unfilled = self._seen.unfilled_slots() if self._whole else ()
        of_slots = [f for each in self._checker.add_errors(self._store, unfilled) for f in each.findings]
        return [*of_slots, *self._checker.finish(self._store).findings]
