"""Renders one shard: its lines, its errors and notes, and the hashes of its ids, each to a file of its own."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any, BinaryIO, NamedTuple

from mmprompt.datasets.repeated_ids import IdFile
from mmprompt.datasets.span import Shard
from mmprompt.errors import MMPromptError
from mmprompt.errors.findings import Note
from mmprompt.render.builder import FailedRow
from mmprompt.render.faults import RowFault, error_data
from mmprompt.render.renderer import Renderer
from mmprompt.render.run import render
from mmprompt.scale.warnings import warnings_kept
from mmprompt.scale.work_folder import WorkFolder
from mmprompt.targets.chunk_writer import ChunkWriter
from mmprompt.tasks.shard_task import seen_by, shard_task

KINDS = ("lines", "events", "ids")


class RenderSpec(NamedTuple):
    """What ``render_shard`` needs. It pickles.

    ``number`` is that of the shard, and ``folder`` the work folder. Of the shard's rows at most ``limit`` are read;
    with ``strict`` none after the first that cannot be rendered. ``threads`` prepare rows whose media are decoded.
    """

    renderer: Renderer
    shard: Shard
    number: int
    folder: str
    limit: int | None = None
    strict: bool = False
    threads: int = 1


def render_shard(spec: RenderSpec) -> dict[str, Any]:
    """Render the rows of a shard into the work folder, and return the shard's report; it is plain data."""
    folder, number, task = WorkFolder(spec.folder), spec.number, shard_task(spec.renderer.task, spec.shard)
    with (
        folder.written(number, "lines") as lines,
        folder.written(number, "events") as events,
        folder.written(number, "ids") as ids,
        warnings_kept() as warnings,
        closing(spec.renderer),
    ):
        counts = _Counts(events)
        fault = None
        with ChunkWriter(lines) as writer:
            try:
                render(
                    spec.renderer.over(task),
                    task.samples(),
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
    return folder.save_report(number, {**report, "warnings": warnings, "seen": seen_by(task)}, KINDS)


class _Counts:
    """Counts rows, and writes their errors and notes as lines of JSON."""

    def __init__(self, events: BinaryIO) -> None:
        self.rows = self.errors = 0
        self._events = events

    def read(self) -> None:
        self.rows += 1

    def failed(self, failed: FailedRow, row: int | None) -> None:
        self.errors += 1
        self._write(RowFault.of(failed, row, self.rows))

    def noted(self, note: Note) -> None:
        self._write([note.code, note.what, note.hint, note.where, note.medium])

    def _write(self, event: object) -> None:
        self._events.write(json.dumps(event, default=str).encode() + b"\n")
