"""The rows of a task on their way to the output of ``mmprompt render``, and their counts."""

from __future__ import annotations

import argparse
from contextlib import closing

from mmprompt.cli.progress import RowCounter, progress
from mmprompt.cli.report import INTERRUPTION, ErrorReport, NoteReport, Outcome, logged
from mmprompt.cli.shards import ShardWriter, rendered_output
from mmprompt.errors import MMPromptError
from mmprompt.render.renderer import Renderer
from mmprompt.render.run import render
from mmprompt.tasks.task import Task


def render_rows(
    arguments: argparse.Namespace, task: Task, renderer: Renderer, errors: ErrorReport, notes: NoteReport
) -> Outcome:
    """Render the rows of the task, and return the counts."""
    counter, writer, repeated, stopped = RowCounter(), None, 0, ""
    try:
        with (
            closing(renderer),
            logged(notes.add),
            progress(counter, errors, task.dataset, arguments.limit),
            rendered_output(arguments, task) as writer,
        ):
            report = render(
                renderer,
                task.samples(),
                writer,
                limit=arguments.limit,
                strict=arguments.strict,
                workers=arguments.workers or 1,
                on_error=lambda failed, row: errors.report(failed, row, counter.rows),
                on_note=notes.add_of_row,
                on_row=counter,
            )
            repeated = report.repeated
            writer.discarded = bool(report.failed and not report.rendered)
    except KeyboardInterrupt:
        stopped = INTERRUPTION
    except MMPromptError:
        if not (arguments.strict and errors.count):
            raise
        stopped = "stopped at this row (--strict)"
    size, name = 0 if writer is None else writer.bytes_written, arguments.output
    if isinstance(writer, ShardWriter):
        name = str(writer)
        for note in writer.notes():
            notes.add(note)
    return Outcome(counter.rows - errors.rows, errors.rows, size, name, repeated, 0, stopped)
