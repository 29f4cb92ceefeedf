"""``mmprompt run --engine``: the requests of a task asked in shards, and their journals merged into one."""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from secrets import randbits

from mmprompt.cli.engine import engine_named, reports_of, work_folder
from mmprompt.cli.progress import RowCounter, progress
from mmprompt.cli.report import ErrorReport, NoteReport, tell_stop
from mmprompt.datasets.sample import Sample
from mmprompt.datasets.span import Shard
from mmprompt.errors import TaskError
from mmprompt.render.builder import FailedRow
from mmprompt.render.faults import RowFault
from mmprompt.run.interruption import Interruption
from mmprompt.run.journal_file import JournalFile
from mmprompt.run.models import ModelSettings
from mmprompt.run.row_facts import RowFacts
from mmprompt.run.runner import Counts, RunSettings
from mmprompt.run.task_run import Plan, RunReport, planned_run, scored
from mmprompt.scale.journals import ShardJournals
from mmprompt.scale.merge import Listeners, RenderMerge, chosen_shards
from mmprompt.scale.reports import ASKED
from mmprompt.scale.shard_run import RunSpec, run_shard
from mmprompt.scale.stop_file import stop_file
from mmprompt.scale.work_folder import WorkFolder
from mmprompt.tasks.shard_task import shard_task
from mmprompt.tasks.task import Task


def run_in_shards(  # noqa: PLR0917  # what a run of the command has
    arguments: argparse.Namespace,
    task: Task,
    asked: ModelSettings,
    settings: RunSettings,
    plan: Plan,
    errors: ErrorReport,
    notes: NoteReport,
) -> RunReport:
    """Ask the requests of the task in shards, and score the replies. After ``^C`` the journal holds what came so far.

    The first ``^C`` lets the requests in flight end in all shards, the second stops at once.

    Raises:
        MMPromptError: the dataset cannot be read, or every request would fail. The journal holds what came before.
        OSError: a journal cannot be written.
    """
    if arguments.collect:
        raise TaskError("--collect asks nobody, so there is nothing to share", "leave out --engine")
    with closing(asked.model(task)) as model:
        journal, settings, manifest = planned_run(task, model, arguments.output, settings, plan)
        concurrency = min(settings.concurrency or model.concurrency, model.concurrency)
    settings = settings._replace(concurrency=concurrency, workers=1)
    with JournalFile(journal, manifest, overwrite=plan.overwrite) as whole:
        if plan.overwrite:
            WorkFolder(f"{journal}.shards").remove()
        with work_folder(arguments, task, journal) as (folder, shards):
            journals = ShardJournals(journal, folder, shards)
            journals.seed(manifest)
            run = _ShardedRun(arguments, task, (folder, journals), errors, notes)
            spec = RunSpec(task, asked, settings, plan, manifest, shards[0], 0, folder.path, randbits(62))
            try:
                with Interruption(tell_stop) as interruption:
                    interruption.stop = Path(stop_file(folder.path, spec.session)).touch
                    run.ask(spec, shards, interruption)
                stopped = bool(interruption)
            except KeyboardInterrupt:
                stopped = True
            finally:
                journals.merge()
            if stopped:
                run.count_unfinished()
    torn = whole.torn + run.counts.torn
    report = RunReport(journal, *run.counts._replace(torn=torn, interrupted=stopped))
    return scored(report, plan, settings)


class _ShardedRun:
    """Asks shards, and adds up what they report."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        task: Task,
        work: tuple[WorkFolder, ShardJournals],
        errors: ErrorReport,
        notes: NoteReport,
    ) -> None:
        self.counts = Counts(0, 0, 0, 0, 0, 0, interrupted=False)
        self._arguments, self._task, self._errors = arguments, task, errors
        self._folder, self._journals = work
        self._stood: dict[int, int] = {}
        self._counter = RowCounter()
        self._merge = RenderMerge(
            task, self._folder, Listeners(self._tell_failed, notes.add_of_row, notes.add, self._counter.add)
        )

    def ask(self, whole: RunSpec, shards: list[Shard], interruption: Interruption) -> None:
        """Ask the rows of all shards, until an interruption. ``whole`` is the spec of each, but for the shard."""
        arguments, task = self._arguments, self._task
        chosen = list(chosen_shards(shards, task.config.test_range, whole.settings.limit))
        workers, shared = _share(whole.settings, min(arguments.workers or os.cpu_count() or 1, len(chosen)))
        if whole.settings.group_by:
            self._require_groups(chosen, whole.settings)
        specs = {
            number: whole._replace(shard=shard, number=number, settings=shared._replace(limit=limit))
            for number, shard, limit in chosen
        }
        self._stood = {number: self._journals.answered(number) for number in specs}
        engine = engine_named(arguments.engine)
        reports = reports_of(engine, run_shard, ASKED, specs, self._folder, workers, self._counter)
        with progress(self._counter, self._errors, task.dataset, arguments.limit), closing(reports):
            for report in reports:
                if "rows" not in report:  # it would have begun after an interruption
                    continue
                self._merge.add(report)
                self._add(
                    Counts(*[report["counts"][name] for name in Counts._fields]), self._stood.pop(report["number"])
                )
        for error in self._merge.unfilled_slots() if not interruption else ():
            self._errors.report(FailedRow(error, error), None, self._counter.rows)
            self.counts = self.counts._replace(failed=self.counts.failed + 1)
        self.counts = self.counts._replace(repeated=sum(1 for _ in self._merge.repeats()))

    def _require_groups(self, shards: Sequence[tuple[int, Shard, int | None]], settings: RunSettings) -> None:
        """Refuse columns to group by that the first row lacks. The errors of rows before it are told first.

        Raises:
            TaskError: it lacks one.
        """
        rows = itertools.chain.from_iterable(shard_task(self._task, shard).samples() for _, shard, _ in shards)
        unread = []
        for row in itertools.islice(rows, settings.limit):
            if not isinstance(row, Sample):
                unread.append(row)
                continue
            try:
                RowFacts(self._task, settings.group_by).require_groups(row)
            except TaskError:
                for error in unread:
                    self._errors.report(FailedRow(error, error), None)
                raise
            return

    def _tell_failed(self, fault: RowFault) -> None:
        self._errors.tell(fault)
        if self._counter.tell is not None:
            self._counter.tell(f"{self._errors.rows} failed")

    def count_unfinished(self) -> None:
        """Count the rows of shards whose reports did not come that are answered."""
        for number, stood in self._stood.items():
            self._add(Counts(self._journals.answered(number), 0, 0, 0, 0, 0, interrupted=True), stood)

    def _add(self, found: Counts, stood: int) -> None:
        """Add the counts of a shard; ``stood`` is how many of its rows were answered before this run."""
        found = found._replace(kept=min(found.answered, stood))
        for name in ("answered", "kept", "failed", "stale", "torn"):
            self.counts = self.counts._replace(**{name: getattr(self.counts, name) + getattr(found, name)})


def _share(settings: RunSettings, workers: int) -> tuple[int, RunSettings]:
    """Return how many shards may be asked at once, and the settings of each, so that the server gets no more in all."""
    concurrency = settings.concurrency or 1
    workers = max(min(workers, concurrency), 1)
    rpm = None if settings.rpm is None else settings.rpm / workers
    return workers, settings._replace(concurrency=concurrency // workers, rpm=rpm)
