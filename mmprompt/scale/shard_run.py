"""Asks the requests of one shard: the replies go to a journal of its own, errors and ids to files beside it."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Any, NamedTuple

from mmprompt.datasets.crash_record import CrashRecord
from mmprompt.datasets.repeated_ids import IdFile
from mmprompt.datasets.span import Shard
from mmprompt.errors import MMPromptError
from mmprompt.render.builder import RequestBuilder
from mmprompt.render.faults import error_data
from mmprompt.run.journal_file import JournalFile
from mmprompt.run.manifest import Manifest
from mmprompt.run.models import ModelSettings
from mmprompt.run.runner import Runner, RunSettings
from mmprompt.run.task_run import Plan
from mmprompt.scale.met_model import MetModel
from mmprompt.scale.row_events import RowEvents
from mmprompt.scale.stop_file import ShardInterruption, stop_file
from mmprompt.scale.warnings import warnings_kept
from mmprompt.scale.work_folder import WorkFolder
from mmprompt.tasks.shard_task import seen_by, shard_task
from mmprompt.tasks.task import Task

KINDS = ("journal", "events", "ids")


class RunSpec(NamedTuple):
    """What ``run_shard`` needs. It pickles.

    ``settings`` are those of this shard: its part of the concurrency and of the requests a minute. ``manifest`` is that
    of the whole run. ``number`` is that of the shard, and ``folder`` the work folder. ``session`` is a number of the
    run that no other run has.
    """

    task: Task
    model: ModelSettings
    settings: RunSettings
    plan: Plan
    manifest: Manifest
    shard: Shard
    number: int
    folder: str
    session: int = 0


def run_shard(spec: RunSpec) -> dict[str, Any]:
    """Ask the requests of a shard, and return the shard's report; it is plain data.

    A row that ended two processes which worked on it is left out. Its error is MM902. A shard that an error ended, such
    as a server that refuses every request, has a report that names it; it is not done, and a later run asks it again.
    So is one that the driver stops: its requests in flight end, and its report has counts. A shard that begins after
    the stop asks nothing, and its report has none.
    """
    folder, number, stop = WorkFolder(spec.folder), spec.number, stop_file(spec.folder, spec.session)
    if os.path.exists(stop):
        return {"number": number, "counts": None}
    task = shard_task(spec.task, spec.shard)
    with (
        folder.written(number, "events") as events,
        folder.written(number, "ids") as ids,
        warnings_kept() as warnings,
        closing(MetModel(spec.model.model(task), os.path.join(spec.folder, f"{spec.session}.met"))) as model,
        closing(RequestBuilder(task, model.target, media=spec.plan.media, policy=spec.plan.policy)) as builder,
        JournalFile(folder.file(number, "journal"), spec.manifest) as journal,
        CrashRecord(folder.file(number, "row"), spec.session) as record,
        ShardInterruption(stop) as interruption,
    ):
        if spec.settings.rpm:
            interruption.wait(60.0 / spec.settings.rpm)  # the shard before may just have asked
        told = RowEvents(events, record)
        runner = Runner(
            builder,
            model,
            journal,
            spec.settings,
            on_failed=told.failed,
            on_row=told.read,
            observed=record.rows,
            ids=IdFile(ids),
        )
        fault, counts = None, None
        try:
            counts = runner.run(interruption)
        except MMPromptError as error:
            fault = error_data(error)
    report = {"shard": spec.shard, "rows": told.rows, "failed": told.errors, "warnings": warnings, "fault": fault}
    report["seen"] = seen_by(task)
    if counts is None:
        return {**report, "number": number}
    report["counts"] = counts._asdict()
    if counts.interrupted:
        return {**report, "number": number}
    report = folder.save_report(number, report, KINDS)
    record.remove()
    return report
