"""The rows of a task on their way to the output of ``mmprompt render``, and their counts."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing, contextmanager

from mmprompt.cli.progress import RowCounter, progress
from mmprompt.cli.report import INTERRUPTION, ErrorReport, NoteReport, Outcome, logged
from mmprompt.cli.shards import ShardWriter, rendered_output
from mmprompt.errors import MMPromptError
from mmprompt.render.renderer import Renderer
from mmprompt.render.run import render
from mmprompt.targets.chunk_writer import ChunkWriter
from mmprompt.tasks.task import Task


class Stop:
    """Why a run ended early; empty if it did not."""

    why = ""


@contextmanager
def stopping(arguments: argparse.Namespace, errors: ErrorReport) -> Iterator[Stop]:
    """End the block without an exception where the user interrupts it, and at the row at which ``--strict`` stops."""
    stop = Stop()
    try:
        yield stop
    except KeyboardInterrupt:
        stop.why = INTERRUPTION
    except MMPromptError:
        if not (arguments.strict and errors.count):
            raise
        stop.why = "stopped at this row (--strict)"


def render_rows(
    arguments: argparse.Namespace, task: Task, renderer: Renderer, errors: ErrorReport, notes: NoteReport
) -> Outcome:
    """Render the rows of the task, and return the counts."""
    counter, repeated = RowCounter(), 0
    writer: ChunkWriter | ShardWriter | None = None
    with (
        stopping(arguments, errors) as stop,
        closing(renderer),
        logged(notes.add),
        progress(counter, errors, task.dataset, arguments.limit),
        rendered_output(arguments, task) as opened,
    ):
        writer = opened
        report = render(
            renderer,
            task.samples(),
            opened,
            limit=arguments.limit,
            strict=arguments.strict,
            workers=arguments.workers or 1,
            on_error=lambda failed, row: errors.report(failed, row, counter.rows),
            on_note=notes.add_of_row,
            on_row=counter,
        )
        repeated = report.repeated
        writer.discarded = bool(report.failed and not report.rendered)
    size, name = 0 if writer is None else writer.bytes_written, arguments.output
    if isinstance(writer, ShardWriter):
        name = str(writer)
        for note in writer.notes():
            notes.add(note)
    return Outcome(counter.rows - errors.rows, errors.rows, size, name, repeated, 0, stop.why)
