"""A dataset rendered in shards by an engine of your own: what each shard needs, and their outputs put together."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from hashlib import sha256

from mmprompt.datasets.output import check_apart
from mmprompt.datasets.output import output as opened
from mmprompt.errors import TaskError, shown
from mmprompt.errors.findings import Note
from mmprompt.render.faults import RowFault
from mmprompt.render.renderer import Renderer
from mmprompt.render.run import RenderReport
from mmprompt.scale.merge import Listeners, RenderMerge, chosen_shards, inputs_of
from mmprompt.scale.plan import ROWS, plan_shards
from mmprompt.scale.reports import RENDERED
from mmprompt.scale.shard_render import RenderSpec
from mmprompt.scale.work_folder import WorkFolder


def render_specs(
    renderer: Renderer, folder: str | os.PathLike[str], rows: int = ROWS, session: int = 0
) -> list[RenderSpec]:
    """Return what ``render_shard`` needs for each shard of the renderer's dataset, in order.

    Every process that calls this with the same input gets the same list, so that each can take a share of it.

    Args:
        renderer: renders the rows; it must pickle if the shards go to other processes.
        folder: the work folder, which is made. All processes write to it, so on several machines it lies on storage
            that they share.
        rows: how many rows a shard has.
        session: a number that all processes of this attempt have and no earlier attempt had, such as the id of the job.
            A row that was in progress when an attempt with another number ended then counts as no death. By default
            each row that a process did not end counts, since the row may have ended the process.

    Raises:
        TaskError: the task has no dataset or one that cannot be read again, or the folder is that of another run: of
            other files, or of a renderer with other settings.
    """
    task, work = renderer.task, WorkFolder(os.fspath(folder))
    if task.dataset is None:
        raise TaskError("the task names no dataset", "give dataset: {path: FILE}, or dataset= in Python")
    settings = sha256(repr(renderer.settings).encode()).hexdigest()
    about = {"rows of a shard": rows, "renderer": settings, **inputs_of(task)}
    shards = work.resumed(about)
    if shards is None:
        shards = plan_shards(task.dataset, rows)
        work.begin(about, shards)
    chosen = chosen_shards(shards, task.config.test_range, None)
    return [RenderSpec(renderer, shard, number, work.path, limit, session=session) for number, shard, limit in chosen]


def merge_rendered(
    specs: Sequence[RenderSpec],
    output: str | os.PathLike[str],
    *,
    on_fault: Callable[[RowFault], object] = lambda _: None,
    on_note: Callable[[Note], object] = lambda _: None,
) -> RenderReport:
    """Write the lines of all shards to one file, in order, and return the counts. The work folder stays.

    Args:
        specs: those of ``render_specs``, each of which ``render_shard`` has done.
        output: the file; it appears under its name when it is complete.
        on_fault: receives each row that was left out, and each repeated id.
        on_note: receives what is accepted but odd.

    Raises:
        TaskError: a shard is not done, or its files are not those of its report.
        MMPromptError: the error that ended the reading of the dataset.
    """
    path = os.fspath(output)
    if not specs:
        raise TaskError("there are no shards to merge", "make them with render_specs")
    renderer, folder = specs[0].renderer, WorkFolder(specs[0].folder)
    check_apart(path, renderer.task.dataset, renderer.task.train)
    counts = _Counts(on_fault)
    merge = RenderMerge(renderer.task, folder, Listeners(counts.fault, on_note, on_note, lambda _: None))
    with closing(renderer), opened(path) as writer:
        for spec in specs:
            report = folder.report(spec.number, RENDERED)
            if report is None:
                what = f"shard {spec.number} in {shown(folder.path)} is not done, or its files have changed since"
                raise TaskError(what, f"run render_shard(specs[{spec.number}]) again")
            merge.add(report, writer)
        repeated = merge.finish(
            renderer, lambda failed, row: counts.fault(RowFault.of(failed, row, merge.rows)), strict=False
        )
    return RenderReport(merge.rows - counts.left_out, counts.left_out, repeated)


class _Counts:
    """Counts the rows that were left out."""

    def __init__(self, on_fault: Callable[[RowFault], object]) -> None:
        self.left_out = 0
        self._on_fault = on_fault

    def fault(self, fault: RowFault) -> None:
        """Count a fault, and pass it on."""
        self.left_out += fault.leaves_out
        self._on_fault(fault)
