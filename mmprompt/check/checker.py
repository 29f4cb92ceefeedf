"""Checks the rows of a task in order, then the dataset as a whole."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Container, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

import mmprompt.check.rules  # noqa: F401  # registers the rules
from mmprompt.check.kept import Progress
from mmprompt.check.media_check import MediaCheck
from mmprompt.check.mending import FORMATS
from mmprompt.check.row_batches import batches_of
from mmprompt.check.row_check import FAULT, HINTS, RowCheck, RowReport
from mmprompt.check.rule import DATASET_RULES, TASK_RULES, Hit
from mmprompt.check.rules.columns import NEARLY_ALL
from mmprompt.check.store import Store
from mmprompt.check.target_check import TargetCheck
from mmprompt.datasets.read import Dataset
from mmprompt.datasets.sample import Row, Sample
from mmprompt.errors import MMPromptError, RowError, Where
from mmprompt.errors.findings import Finding
from mmprompt.errors.rules import RULES
from mmprompt.media.policy import MediaPolicy
from mmprompt.render.builder import RequestBuilder, keep_heap
from mmprompt.render.media import sample_bytes
from mmprompt.render.parallel import ordered_map
from mmprompt.tasks.media_slots import UnfilledSlotError
from mmprompt.tasks.shard_task import rows_of
from mmprompt.tasks.task import Task

Watched = Callable[[Iterator[Row]], Iterator[Row]]
Keeps = Callable[[Finding], bool]

_ONCE = {"MM003": 0.0, "MM706": NEARLY_ALL}
"""Codes of which the first finding of each file stands for all, if so large a share of the rows has one."""

_SAME = {"MM611": "MM715", "MM102": "MM105"}
"""Notes on all rows that a rule tells better, row by row."""

_TOGETHER, _TOGETHER_OF_SEVERAL = 16, 4
"""Rows that are checked together at most, by one worker or by each of several."""

SharedFinding = tuple["int | None", str, str]
"""Row, code and message of a finding on a medium that many rows send, told for the first of them."""


class RowsFound(NamedTuple):
    """What is known of the rows of a shard beside their findings and facts. It is plain data.

    ``codes`` are those found, told or not. ``fault`` is the error that ended the reading, if one did.
    """

    codes: list[str]
    shared: list[SharedFinding]
    fault: list[Finding]


class Checker:
    """Checks the rows of a task. Close it to end its decoding processes.

    Args:
        task: the task, or a dataset's default one.
        target: the target whose limits hold; without one only limits that all targets share.
        policy: which media may be read; by default those below the dataset's folder.
        decode: look inside media; without it their headers alone are judged.
        codes: the codes to report; by default all.
        keeps: says of a finding whether it is told; by default each is.
        limit: reads at most this many rows.
        thumbnails: keep small pictures of the media in the store, for a report.

    Raises:
        TargetError: the target is unknown.
        PolicyError: a root is not a folder.
    """

    def __init__(
        self,
        task: Task,
        target: str | None = None,
        *,
        policy: MediaPolicy | None = None,
        decode: bool = True,
        codes: Container[str] = RULES,
        keeps: Keeps | None = None,
        limit: int | None = None,
        thumbnails: bool = False,
    ) -> None:
        self.task = task
        self.builder = RequestBuilder(task, target or "vllm", media="inline", policy=policy)
        self._media = MediaCheck(self.builder.media.reader, decode=decode, thumbnails=thumbnails)
        limits = TargetCheck(self.builder, named=target is not None)
        self._rows = RowCheck(task, self.builder, self._media, limits, codes)
        self._codes = codes
        self._keeps = keeps
        self._limit = limit
        self._found: set[str] = set()
        self._told_once: set[tuple[str, str]] = set()
        self._shared: list[SharedFinding] = []
        self._fault: list[Finding] = []

    def close(self) -> None:
        """End the decoding processes."""
        self.builder.close()
        self._media.close()

    def check(self, store: Store, workers: int = 1) -> Iterator[RowReport]:
        """Check all rows, then the whole dataset. Yield the report of each row in order, then that of the dataset.

        The findings of a report are in the store. Rows that the store has are left out.
        """
        if store.progress.finished:
            return
        self.begin(store)
        yield from self.check_rows(store, workers)
        yield self.finish(store)
        store.save(store.progress._replace(finished=True), now=True)

    def begin(self, store: Store) -> None:
        """Take up what the store has, or keep in it what the rows are compared with."""
        store.target, store.output_column = self.builder.target, self.task.output_column
        self._found, self._told_once = set(store.progress.codes), set(store.progress.shared)
        if not store.progress.items:
            self._read_train(store)

    def check_rows(self, store: Store, workers: int = 1, watched: Watched = iter) -> Iterator[RowReport]:
        """Check all rows that the store does not have; see ``check``. Each passes ``watched`` when it is worked on."""
        keep_heap()
        if self.task.dataset is not None:
            self.task.dataset.read_thoroughly()
        items = itertools.islice(self._numbered(watched), store.progress.items, self._limit)
        together = 1 if watched is not iter else _TOGETHER if workers == 1 else _TOGETHER_OF_SEVERAL
        with closing(self._reports(items, workers, together)) as reports:
            for report in reports:
                yield self._kept(report, store)

    @property
    def rows_found(self) -> RowsFound:
        """What ``check_rows`` found beside what it kept in the store."""
        return RowsFound(sorted(self._found), self._shared, self._fault)

    def add(self, store: Store, shard: Store, found: RowsFound) -> RowReport:
        """Add to the store what ``check_rows`` found and kept in the store of the next shard; return its findings."""
        self._found.update(found.codes)
        again = {tuple(each) for each in found.shared if (each[1], each[2]) in self._told_once}
        self._told_once.update((code, message) for _, code, message in found.shared)
        own = [f for f in shard.findings() if not again or (f.row, f.code, f.message) not in again]
        findings = self._told(own)
        store.take(shard.path, findings)
        self._fault = found.fault
        return RowReport([finding for finding in findings if finding.code not in _ONCE])

    def add_errors(self, store: Store, errors: Iterable[RowError]) -> Iterator[RowReport]:
        """Keep errors on all rows, and yield the report of each."""
        for error in errors:
            yield from [self._kept(report, store) for report in self._rows.reports([(error, None)])]

    def finish(self, store: Store) -> RowReport:
        """Check the whole dataset, whose rows the store has; see ``check``."""
        once = list(_once(store))
        of_dataset = self._of_dataset(store) if store.progress.items or not self._fault else ()
        found = self._told([*self._fault, *of_dataset])
        store.add_findings(found)
        return RowReport([*once, *found])

    def _kept(self, report: RowReport, store: Store) -> RowReport:
        """Keep what a row gave, and return it without findings that are reported at the end or not at all."""
        shared = list(self._first(report.shared))
        self._shared += [(finding.row, finding.code, finding.message) for finding in shared]
        findings = self._told([*report.findings, *shared])
        if not self._mendable:
            findings = [finding._replace(fixable=False) for finding in findings]
        store.add(findings, report.sample, report.media)
        fixed = {(finding.code, finding.column) for finding in findings if self._mendable}
        store.add_thumbnails(report.thumbnails)
        store.add_fixes(fix for fix in report.fixes if (fix.code, fix.column) in fixed)
        items, rows, *_ = store.progress
        rows += report.number is not None
        store.save(Progress(items + 1, rows, False, frozenset(self._found), frozenset(self._told_once)))
        return report._replace(findings=[finding for finding in findings if finding.code not in _ONCE])

    @property
    def _mendable(self) -> bool:
        """Whether ``--fix`` can write the dataset."""
        return self.task.dataset is not None and self.task.dataset.format in FORMATS

    @property
    def _path(self) -> str | None:
        return None if self.task.dataset is None else self.task.dataset.path

    def reports(self, rows: Iterable[Row]) -> Iterator[RowReport]:
        """Yield what each of these rows gives, and keep nothing."""
        return self._reports(zip(rows, itertools.count(), strict=False), 1, 1)

    def _read_train(self, store: Store) -> None:
        """Read the rows that examples are taken from, unless retrievers take them from the rows that are checked."""
        train, own = self.task.train, self._path
        if train is not None and "MM711" in self._codes and (train.path is None or train.path != own):
            read_against(self.task, train, store, self._media.policy)

    def _numbered(self, watched: Watched) -> Iterator[tuple[Row, int | None]]:
        """Yield the rows with their numbers in the dataset; an error that ends the reading is kept as the fault."""
        chosen = rows_of(self.task)
        step = chosen.step or 1
        number = (chosen.start or 0) - step
        try:
            for row in watched(self.task.samples()):
                if isinstance(row, UnfilledSlotError):
                    yield row, None
                    continue
                number = row.row if isinstance(row, Sample) else number + step
                yield row, number
        except MMPromptError as error:
            self._fault.append(Finding.of(error.located(file=self._path)))

    def _reports(
        self, rows: Iterable[tuple[Row, int | None]], workers: int, together: int
    ) -> Generator[RowReport, None, None]:
        batches = batches_of(iter(rows), together)
        if workers == 1:
            for batch in batches:
                yield from self._rows.reports(batch)
        else:
            size = lambda batch: sum([sample_bytes(row) for row, _ in batch])  # noqa: E731
            check = lambda batch: list(self._rows.reports(batch))  # noqa: E731
            for reports in ordered_map(check, batches, workers, item_bytes=size, result_bytes=lambda _: 0):
                yield from reports

    def _told(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return those of the findings to report."""
        told = []
        for finding in findings:
            self._found.add(finding.code)
            if finding.code == FAULT or (finding.code in self._codes and (self._keeps is None or self._keeps(finding))):
                told.append(finding)
        return told

    def _first(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Yield those findings on shared media that no row before had."""
        for finding in findings:
            key = (finding.code, finding.message)
            if key not in self._told_once:
                self._told_once.add(key)
                yield finding

    def _of_dataset(self, store: Store) -> Iterator[Finding]:
        """Yield the findings on the whole dataset, and the notes on all rows."""
        for code, rule in DATASET_RULES.items():
            if code in self._codes:
                for hit in rule(store):
                    self._found.add(code)
                    yield _located(code, hit, store, self._path)
        for code, of_task in TASK_RULES.items():
            if code in self._codes:
                yield from [_located(code, hit, store, self._path) for hit in of_task(self.task)]
        found = frozenset(self._found)
        for note in self.task.notes():
            if found.isdisjoint((note.code, _SAME.get(note.code))):
                fixable = note.code == "MM004" and self._mendable
                finding = note.finding._replace(file=note.where.file or self._path, fixable=fixable)
                yield finding._replace(hint=finding.hint or HINTS.get(note.code, ""))


def _once(store: Store) -> Iterator[Finding]:
    """Yield the findings that were held back, of which one may stand for all."""
    for code, share in _ONCE.items():
        rows = next(store.query("SELECT COUNT(DISTINCT row) FROM findings WHERE code = ?", code))[0]
        if rows:
            yield from store.once(code) if rows >= share * store.progress.rows else store.findings_of(code)


def _located(code: str, hit: Hit, store: Store, path: str | None) -> Finding:
    """Return the finding of a rule on the whole dataset, with the place of its row; ``path`` is the dataset's."""
    known = None if hit.row is None else store.sample(hit.row)
    if known is None:
        return Finding.at(code, hit.message, hit.hint, Where(path, column=hit.column), hit.row)
    where = Where(known.file, known.line, hit.column, hit.offset)
    return Finding.at(code, hit.message, hit.hint, where, hit.row, json.loads(known.id))


def dataset_fault(error: MMPromptError, path: str | None) -> Finding:
    """Return the finding of a dataset or task that cannot be opened."""
    return Finding.of(error.located(file=path))


def read_against(task: Task, dataset: Dataset, store: Store, policy: MediaPolicy) -> None:
    """Keep the digests of the rows of another dataset, such as the training set, to compare those of a task with."""
    roots = policy.roots if dataset.root is None else (dataset.root, *policy.roots)
    with closing(Checker(task, policy=replace(policy, roots=roots), decode=False, codes=())) as checker:
        for report in checker.reports(dataset):
            if report.sample is not None and report.sample.sent is not None:
                store.add_against(report.sample)
