"""The inputs of ``mmprompt check`` on their way to the report."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import NamedTuple

from mmprompt.check.baseline import baseline_chunks
from mmprompt.check.checker import Checker, dataset_fault, read_against
from mmprompt.check.reports.report import Report, Write
from mmprompt.check.store import Store
from mmprompt.check.summary import Summary
from mmprompt.cli.check_settings import CheckSettings, state_files
from mmprompt.cli.dataset_options import tell_format
from mmprompt.cli.mending import Mending
from mmprompt.cli.progress import RowCounter, progress
from mmprompt.cli.report import refuse_rows
from mmprompt.cli.task_options import other_dataset, policy_of, task_of
from mmprompt.datasets.output import output
from mmprompt.errors import DatasetError, MMPromptError, TargetError, TaskError
from mmprompt.errors.findings import Finding
from mmprompt.run.side_lock import SideLock
from mmprompt.tasks.files import is_task_file
from mmprompt.tasks.task import Task

Tell = Callable[[Finding], object]


class Input(NamedTuple):
    """A task to check, or the finding that says why it cannot be opened. ``paths`` are those that name it."""

    paths: Sequence[str]
    task: Task | None
    fault: Finding | None = None

    @property
    def name(self) -> str:
        """The first path, and how many more there are."""
        more = len(self.paths) - 1
        return self.paths[0] + (f" and {more} more" if more else "")


class Run:
    """One run of the command: checks each input, and writes the report. ``mended`` findings were."""

    def __init__(self, arguments: argparse.Namespace, settings: CheckSettings) -> None:
        self._arguments = arguments
        self._settings = settings
        self._summary = Summary()
        self._lines = _Lines()
        self.mended = 0

    def check(self) -> Summary:
        """Check each input, write the report, and return the counts.

        Raises:
            MMPromptError: an option is wrong, or there is no such file.
            OSError: the output cannot be written.
        """
        if self._arguments.engine is not None and (self._arguments.fix or self._arguments.diff):
            raise TaskError("--fix and --diff do not go with --engine", "leave out --engine")
        inputs = self._inputs()
        mending = Mending(self._arguments)
        if self._arguments.fix or self._arguments.diff:
            for each in inputs:
                if each.task is not None and each.task.dataset is not None:
                    mending.require(each.paths, each.task.dataset)
        with ExitStack() as opened:
            in_shards = self._arguments.engine is not None  # which keep the state
            files = [] if in_shards else state_files(self._arguments.output_file, len(inputs))
            for file in files[:1]:
                opened.callback(SideLock(file, "--output-file").close)
            stores = [opened.enter_context(self._store(*each)) for each in itertools.zip_longest(files, inputs)]
            checked = list(zip(inputs, stores, strict=True))
            known = self._settings.write_known
            with _writing(known or self._arguments.output_file, self._lines) as write:
                if self._arguments.fix or self._arguments.diff:
                    self._mend(mending, checked, write)
                if known is not None:
                    for each, store in checked:
                        self._check(each, store, None)
                        self._count(store)
                    for chunk in baseline_chunks(known, (f for store in stores for f in store.findings())):
                        write(chunk)
                elif not self._arguments.diff:
                    self._report(self._settings.report(write), checked)
            for store in stores:
                store.remove()
        return self._summary

    def _inputs(self) -> list[Input]:
        inputs = list(opened_inputs(self._arguments))
        if any(each.task is None for each in inputs):
            refuse_rows(self._arguments.output_file)
        return inputs

    def _report(self, report: Report, checked: Iterable[tuple[Input, Store]]) -> None:
        report.begin()
        live = report.streams and self._lines.shown and not self._arguments.fix
        for each, store in checked:
            report.missing.roots = () if each.task is None else policy_of(self._arguments, each.task).roots
            self._check(each, store, report.finding if live else None)
            self._count(store)
            if not live:
                report.dataset(each.name, store)
        report.end(self._summary)

    def _store(self, file: str | None, each: Input) -> Store:
        """Return the store of an input: a temporary one, or a file beside the report, which a run can resume."""
        if file is None:
            return Store()
        signature = self._settings.signature(self._arguments, each.paths, each.task)
        return Store(file, signature, resume=self._arguments.resume)

    def _mend(self, mending: Mending, checked: Sequence[tuple[Input, Store]], write: Write) -> None:
        """Check the inputs, and write them mended; with ``--diff`` write the difference alone."""
        for each, store in checked:
            if each.task is not None:
                self._check(each, store, None)
                if each.task.dataset is not None:
                    mending.mend(each.task.dataset, store, write)
        self.mended = mending.count

    def _check(self, each: Input, store: Store, tell: Tell | None) -> None:
        """Check what is not checked yet of an input. ``tell`` receives the findings as they come."""
        if store.progress.finished:
            return
        if each.task is not None:
            self._rows(each.task, store, tell)
        elif each.fault is not None:
            if each.fault.code in self._settings.selection and self._settings.keeps(each.fault):
                store.add_findings([each.fault])
                if tell is not None:
                    tell(each.fault)
            store.save(store.progress._replace(finished=True), now=True)

    def _count(self, store: Store) -> None:
        for finding in store.findings():
            self._summary.add(finding)
        self._summary.rows += store.progress.rows
        if not self._arguments.unsafe_fixes:
            unsafe = "SELECT COUNT(*) FROM (SELECT DISTINCT row, code, column_name FROM fixes WHERE NOT safe)"
            self._summary.unsafe += next(store.query(unsafe))[0]

    def _rows(self, task: Task, store: Store, tell: Tell | None) -> None:
        arguments, counter, found = self._arguments, RowCounter(), 0
        tell_format(task.dataset, arguments.format)
        with closing(self._checker(task)) as checker, progress(counter, self._lines, task.dataset, arguments.limit):
            if arguments.engine is not None:
                from mmprompt.cli.engine_check import check_in_shards  # noqa: PLC0415  # loads with the option

                check_in_shards(arguments, self._settings, checker, store, counter, tell)
                return
            if arguments.against is not None and not store.progress.items:
                read_against(task, other_dataset(arguments, task), store, policy_of(arguments, task))
            for report in checker.check(store, self._settings.workers):
                found += len(report.findings)
                if tell is not None:
                    for finding in report.findings:
                        tell(finding)
                if counter.tell is not None:
                    counter.tell(f"{found} finding{'s' * (found != 1)}")
                if report.number is not None:
                    counter()

    def _checker(self, task: Task) -> Checker:
        arguments, settings = self._arguments, self._settings
        try:
            return Checker(
                task,
                settings.target,
                policy=policy_of(arguments, task),
                decode=not arguments.no_decode,
                codes=settings.selection,
                keeps=settings.keeps,
                limit=arguments.limit,
                thumbnails=settings.report.thumbnails,
            )
        except TargetError as error:
            named = arguments.target is not None or settings.target is None
            file = None if named else settings.configuration.file
            raise error.located(file=file) from None


def opened_inputs(arguments: argparse.Namespace) -> Iterator[Input]:
    """Yield the inputs: each task file, and the datasets, of which those of one folder and format are one dataset.

    Raises:
        MMPromptError: an option is wrong, or there is no such file.
    """
    groups: dict[object, list[str]] = {}
    for path in arguments.input:
        found = _opened(arguments, [path])
        if found.task is None or is_task_file(path) or len(arguments.input) == 1:
            yield found
        elif (dataset := found.task.dataset) is not None:
            key = (dataset.root and os.path.realpath(dataset.root), dataset.format)
            groups.setdefault(key, []).append(path)
    for paths in groups.values():
        yield _opened(arguments, paths)


def _opened(arguments: argparse.Namespace, paths: list[str]) -> Input:
    try:
        return Input(paths, task_of(arguments, paths))
    except MMPromptError as error:
        in_file = isinstance(error, DatasetError) or error.where.file == paths[0]
        if not in_file or not os.path.exists(paths[0]):
            raise
        return Input(paths, None, dataset_fault(error, paths[0]))


class _Lines:
    """Makes room for lines on a terminal that shows a bar. ``shown``: the report goes to a terminal, line by line."""

    make_room: Callable[[], object] | None = None
    shown = False


@contextmanager
def _writing(path: str | None, lines: _Lines) -> Iterator[Write]:
    """Open the output for text."""
    if path is not None:
        with output(path) as writer:
            yield lambda text: writer.write([text.encode("utf-8", "backslashreplace")])
            writer.flush()
        return
    if sys.stdout is None:
        raise TaskError("standard output is closed", "name a file with --output-file")
    stream, lines.shown = sys.stdout.buffer, sys.stdout.isatty()

    def write(text: str) -> None:
        if lines.make_room is not None and lines.shown:
            lines.make_room()
        stream.write(text.encode("utf-8", "backslashreplace"))
        if lines.shown:
            stream.flush()

    sys.stdout.flush()
    yield write
    stream.flush()
