"""``mmprompt check --engine``: the rows of an input are checked in shards, then the dataset as a whole."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from secrets import randbits

from mmprompt.check.checker import Checker, read_against
from mmprompt.check.store import Store
from mmprompt.cli.check_settings import CheckSettings, state_files
from mmprompt.cli.engine import engine_named, reports_of, rows_per_shard, work_folder
from mmprompt.cli.progress import RowCounter
from mmprompt.cli.task_options import other_dataset, policy_of
from mmprompt.datasets.span import Shard
from mmprompt.errors.findings import Finding
from mmprompt.scale.merge import chosen_shards
from mmprompt.scale.plan import plan_shards
from mmprompt.scale.reports import CHECKED
from mmprompt.scale.shard_check import CheckMerge, CheckSpec, check_shard
from mmprompt.scale.work_folder import WorkFolder
from mmprompt.tasks.task import Task


def check_in_shards(  # noqa: PLR0917  # what a run of the command has
    arguments: argparse.Namespace,
    settings: CheckSettings,
    checker: Checker,
    store: Store,
    counter: RowCounter,
    tell: Callable[[Finding], object] | None,
) -> None:
    """Check the rows of a task in shards, then the dataset. ``tell`` receives the findings as shards are merged."""
    task = checker.task
    policy, engine = policy_of(arguments, task), engine_named(arguments.engine)
    with _folder(arguments, settings, task) as (folder, shards):
        checker.begin(store)
        if arguments.against is not None:
            read_against(task, other_dataset(arguments, task), store, policy)
        merge = CheckMerge(checker, store, folder)
        own = (settings.target, policy, not arguments.no_decode, settings.selection, settings.report.thumbnails)
        session = randbits(62)
        specs = {
            number: CheckSpec(task, shard, number, folder.path, limit, *own, session=session)
            for number, shard, limit in chosen_shards(shards, task.config.test_range, arguments.limit)
        }
        workers = arguments.workers or settings.configuration.workers
        found = 0
        with closing(reports_of(engine, check_shard, CHECKED, specs, folder, workers, counter)) as reports:
            for report in reports:
                findings = merge.add(report)
                found += len(findings)
                _tell(findings, tell)
                if counter.tell is not None:
                    counter.tell(f"{found} finding{'s' * (found != 1)}")
                counter.add(report["rows"])
        _tell(merge.finish(), tell)
    store.save(store.progress._replace(finished=True), now=True)


def _tell(findings: list[Finding], tell: Callable[[Finding], object] | None) -> None:
    for finding in findings if tell is not None else ():
        tell(finding)  # type: ignore[misc]  # it is not None


@contextmanager
def _folder(
    arguments: argparse.Namespace, settings: CheckSettings, task: Task
) -> Iterator[tuple[WorkFolder, list[Shard]]]:
    """Give the work folder and the shards. It lies beside the report, or among temporary files if that has no name."""
    if len(arguments.input) == 1 and state_files(arguments.output_file, 1):
        more = {"codes": settings.selection.codes, "--target": settings.target, "pictures": settings.report.thumbnails}
        with work_folder(arguments, task, arguments.output_file, more) as made:
            yield made
        return
    if task.dataset is None:
        list(task.samples())  # says that there is none
        return
    with tempfile.TemporaryDirectory(prefix="mmprompt-") as temporary:
        folder = WorkFolder(os.path.join(temporary, "shards"))
        shards = plan_shards(task.dataset, rows_per_shard(arguments))
        folder.begin({}, shards)
        yield folder, shards
