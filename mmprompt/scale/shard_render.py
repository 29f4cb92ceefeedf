"""Renders one shard: its lines, its errors and notes, and the hashes of its ids, each to a file of its own."""

from __future__ import annotations

from contextlib import closing
from typing import Any, NamedTuple

from mmprompt.datasets.crash_record import CrashRecord
from mmprompt.datasets.repeated_ids import IdFile
from mmprompt.datasets.span import Shard
from mmprompt.errors import MMPromptError
from mmprompt.render.faults import error_data
from mmprompt.render.renderer import Renderer
from mmprompt.render.run import render
from mmprompt.scale.row_events import RowEvents
from mmprompt.scale.warnings import warnings_kept
from mmprompt.scale.work_folder import WorkFolder
from mmprompt.tasks.shard_task import seen_by, shard_task

KINDS = ("lines", "events", "ids")


class RenderSpec(NamedTuple):
    """What ``render_shard`` needs. It pickles.

    ``number`` is that of the shard, and ``folder`` the work folder. Of the shard's rows at most ``limit`` are read;
    with ``strict`` none after the first that cannot be rendered. ``threads`` prepare rows whose media are decoded.
    ``session`` is that of ``render_specs``.
    """

    renderer: Renderer
    shard: Shard
    number: int
    folder: str
    limit: int | None = None
    strict: bool = False
    threads: int = 1
    session: int = 0


def render_shard(spec: RenderSpec) -> dict[str, Any]:
    """Render the rows of a shard into the work folder, and return the shard's report; it is plain data."""
    folder, number, task = WorkFolder(spec.folder), spec.number, shard_task(spec.renderer.task, spec.shard)
    with (
        folder.written(number, "lines") as writer,
        folder.written(number, "events") as events,
        folder.written(number, "ids") as ids,
        warnings_kept() as warnings,
        closing(spec.renderer),
        CrashRecord(folder.file(number, "row"), spec.session) as record,
    ):
        counts = RowEvents(events, record)
        fault = None
        try:
            render(
                spec.renderer.over(task, ahead=False),  # the record says which row is being rendered
                record.rows(task.samples()),
                writer,
                limit=spec.limit,
                strict=spec.strict,
                workers=spec.threads,
                on_error=counts.failed,
                on_note=counts.noted,
                on_row=counts.read,
                ids=IdFile(ids),
            )
        except MMPromptError as error:
            fault = error_data(error)
    taken = getattr(None if task.dataset is None else task.dataset.change, "taken", 0)
    report = {"shard": spec.shard, "rows": counts.rows, "failed": counts.errors, "fault": fault, "taken": taken}
    report = folder.save_report(number, {**report, "warnings": warnings, "seen": seen_by(task)}, KINDS)
    record.remove()
    return report
