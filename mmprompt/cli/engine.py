"""Commands whose rows are done in shards by an engine: ``--engine``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from secrets import randbits
from typing import Any

from mmprompt.cli import say
from mmprompt.cli.progress import RowCounter, progress, shard_progress
from mmprompt.cli.rendering import stopping
from mmprompt.cli.report import ErrorReport, NoteReport, Outcome
from mmprompt.cli.shards import ShardFiles, merged_output
from mmprompt.cli.task_options import ROWS_PER_SHARD
from mmprompt.datasets.openai_chat import LastAssistant
from mmprompt.datasets.span import Shard
from mmprompt.datasets.store_url import StoreURL, as_named
from mmprompt.errors import MMPromptError, TaskError, nearest, shown
from mmprompt.render.renderer import Renderer
from mmprompt.run.side_lock import SideLock
from mmprompt.scale.local import run_local
from mmprompt.scale.merge import Listeners, RenderMerge, chosen_shards, in_order, inputs_of
from mmprompt.scale.plan import plan_shards
from mmprompt.scale.reports import RENDERED
from mmprompt.scale.shard_render import RenderSpec, render_shard
from mmprompt.scale.work_folder import WorkFolder
from mmprompt.targets.json_files import Form
from mmprompt.tasks.task import Task

Report = dict[str, Any]
Engine = Callable[[Callable[[Any], Report], Iterable[Any], "int | None"], Generator[Report, None, None]]

_ASIDE = (
    *("engine", "workers", "errors", "output", "strict_notes", "run", "command", "concurrency", "rpm", "timeout"),
    *("api_key_env", "overwrite", "report", "fail_under", "rows_per_shard", "output_file", "output_format", "resume"),
    *("shards", "fix", "diff", "unsafe_fixes", "statistics", "exit_zero", "baseline", "write_baseline", "header"),
    "replaces",
)
"""Options that change nothing in what the shards hold."""


def engine_named(name: str) -> Engine:
    """Return an engine: a function from work, what the work needs for each shard, and a number of workers to reports.

    Raises:
        TaskError: there is no engine of this name.
    """
    if name == "local":
        return run_local
    if name == "ray":
        from mmprompt.scale.ray_engine import run_ray  # noqa: PLC0415  # loads with the engine

        return run_ray
    raise TaskError(f"unknown engine {shown(name)}", nearest(name, ("local", "ray")))


@contextmanager
def work_folder(
    arguments: argparse.Namespace,
    task: Task,
    written: str | None,
    more: Mapping[str, object] | None = None,
) -> Iterator[tuple[WorkFolder, list[Shard]]]:
    """Give the folder of the shards, which lies beside the file that is written, and the shards.

    A run that was stopped is gone on with, if the options, the input and ``more`` are as they were; its shards keep
    their rows. The folder is removed at the end; it stays if the run is stopped, or the system or the engine fails.

    Raises:
        TaskError: the output has no name, another run works in the folder, or its input or options were others.
    """
    if written in (None, "-") or (os.path.exists(str(written)) and not os.path.isfile(str(written))):
        raise TaskError("--engine writes to a file", "name it with -o FILE")
    if task.dataset is None:
        list(task.samples())  # says that there is none
        raise TaskError("the task names no dataset", "give --dataset FILE")
    named = as_named(str(written))
    folder = WorkFolder(f"{os.path.basename(named) if isinstance(named, StoreURL) else written}.shards")
    options = {name: value for name, value in sorted(vars(arguments).items()) if name not in _ASIDE}
    about = {f"--{name.replace('_', '-')}": value for name, value in options.items()} | inputs_of(
        task, *_files(arguments)
    )
    about |= more or {}
    lock = SideLock(folder.path)
    try:
        shards = folder.resumed(about)
        if shards is None:
            shards = plan_shards(task.dataset, rows_per_shard(arguments))
            folder.begin(about, shards)
        try:
            yield folder, shards
        except KeyboardInterrupt:
            if done := folder.done:
                say(f"mmprompt: the same command goes on: {done} of {len(shards)} shards are done")
            raise
        except MMPromptError:
            if not folder.is_kept or folder.is_empty:  # an error of a row would come again
                folder.remove()
            raise
        folder.remove()
    finally:
        lock.close()


def rows_per_shard(arguments: argparse.Namespace) -> int:
    """Return how many rows a shard has."""
    return arguments.rows_per_shard or ROWS_PER_SHARD[arguments.command]


def _files(arguments: argparse.Namespace) -> list[str]:
    return [name for name in arguments.input if os.path.isfile(name)]


def reports_of(  # noqa: PLR0917  # what a run in shards has
    engine: Engine,
    work: Callable[[Any], Report],
    form: Form,
    specs: Mapping[int, Any],
    folder: WorkFolder,
    workers: int | None,
    counter: RowCounter,
) -> Generator[Report, None, None]:
    """Yield the report of each shard in the order of shards. Shards that are done are not done again.

    The bar of the counter moves as rows are done, whatever the order of shards. ``form`` is that of a report.
    """
    done = {number: report for number in specs if (report := folder.report(number, form)) is not None}
    if done:
        say(f"mmprompt: going on: {len(done)} of {len(specs)} shards were done before")
    changed = sum(number not in done and folder.has_report(number) for number in specs)
    if changed:
        say(f"mmprompt: shards done again, because their files have changed: {changed}")
    left = [spec for number, spec in specs.items() if number not in done]

    def every() -> Generator[Report, None, None]:
        yield from done.values()
        with closing(engine(work, left, workers)) as running:
            try:
                yield from running
            except MMPromptError:
                folder.is_kept = True  # what is done is right
                raise

    with closing(every()) as reports, shard_progress(counter, folder):
        yield from in_order(reports, list(specs))


def render_in_shards(  # noqa: PLR0917  # what a run of the command has
    arguments: argparse.Namespace,
    task: Task,
    renderer: Renderer,
    errors: ErrorReport,
    notes: NoteReport,
    last: LastAssistant | None,
) -> Outcome:
    """Render the rows of the task in shards, and return the counts."""
    counter, repeated, size, name = RowCounter(), 0, 0, arguments.output
    engine, merge = engine_named(arguments.engine), None
    with stopping(arguments, errors) as stop:
        with (
            work_folder(arguments, task, arguments.output) as (folder, shards),
            progress(counter, errors, task.dataset, arguments.limit),
            merged_output(arguments, task) as writer,
        ):
            merge = RenderMerge(task, folder, Listeners(errors.tell, notes.add_of_row, notes.add, counter.add))
            strict, session = arguments.strict, randbits(62)
            specs = {
                number: RenderSpec(renderer, shard, number, folder.path, limit, strict, session=session)
                for number, shard, limit in chosen_shards(shards, task.config.test_range, arguments.limit)
            }
            with closing(
                reports_of(engine, render_shard, RENDERED, specs, folder, arguments.workers, counter)
            ) as reports:
                for report in reports:
                    if isinstance(writer, ShardFiles):
                        merge.add(report)
                        writer.add(folder.file(report["number"], "lines"), report["rows"] - report["failed"])
                    else:
                        merge.add(report, writer)
            repeated = merge.finish(
                renderer, lambda failed, row: errors.report(failed, row, counter.rows), strict=arguments.strict
            )
            writer.discarded = bool(errors.rows and counter.rows == errors.rows)
        size = writer.bytes_written
        if isinstance(writer, ShardFiles):
            name = str(writer)
            for note in writer.notes():
                notes.add(note)
    if last is not None and merge is not None:
        last.taken = merge.taken
    return Outcome(counter.rows - errors.rows, errors.rows, size, name, repeated, 0, stop.why)
