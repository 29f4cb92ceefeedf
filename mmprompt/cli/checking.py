"""The inputs of ``mmprompt check`` on their way to the report."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import NamedTuple

from mmprompt.check.checker import Checker, dataset_fault
from mmprompt.check.reports.formats import FORMATS
from mmprompt.check.reports.report import Report, Write
from mmprompt.check.reports.text import StatisticsReport
from mmprompt.check.selection import Selection
from mmprompt.check.store import Store
from mmprompt.check.summary import Summary
from mmprompt.cli.dataset_options import tell_format
from mmprompt.cli.output import check_output, output
from mmprompt.cli.task_options import check_apart, policy_of, task_of
from mmprompt.errors import DatasetError, MMPromptError, TaskError, nearest, shown
from mmprompt.errors.findings import Finding
from mmprompt.tasks.files import is_task_file
from mmprompt.tasks.task import Task


class CheckSettings(NamedTuple):
    """What the options of a check say. ``report`` is the class of its report."""

    selection: Selection
    target: str | None
    report: type[Report]

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> CheckSettings:
        """Return what the options say.

        Raises:
            TaskError: a code or the format is unknown, or the output cannot become a file.
        """
        chosen = [codes_in(given) for given in (arguments.select, arguments.ignore, arguments.extend_select)]
        selection = Selection(*chosen)
        report = FORMATS.get(arguments.output_format)
        if report is None:
            raise TaskError(
                f"unknown output format {shown(arguments.output_format)}", nearest(arguments.output_format, FORMATS)
            )
        if arguments.statistics:
            if arguments.output_format != "text":
                raise TaskError("--statistics is a report of its own", "give it without --output-format")
            report = StatisticsReport
        check_output(arguments.output_file)
        check_apart(arguments.output_file, *arguments.input, arguments.dataset, arguments.train)
        return cls(selection, arguments.target, report)


class Input(NamedTuple):
    """A task to check, or the finding that says why it cannot be opened. ``name`` is its path as given."""

    name: str
    task: Task | None
    fault: Finding | None = None


def codes_in(given: Sequence[str]) -> list[str]:
    """Return the codes in the values of an option, which separate them by commas or blanks."""
    return [code for value in given for code in re.split(r"[,\s]+", value.strip()) if code]


def check_inputs(arguments: argparse.Namespace, settings: CheckSettings) -> Summary:
    """Check each input, write the report, and return the counts."""
    inputs = list(opened_inputs(arguments))
    summary = Summary()
    with ExitStack() as opened:
        write = opened.enter_context(_writing(arguments.output_file))
        report = settings.report(write)
        report.begin()
        live = report.streams and arguments.output_file is None
        for each in inputs:
            store = opened.enter_context(Store())
            for finding in _findings(each, arguments, settings, store, summary):
                summary.add(finding)
                if live:
                    report.finding(finding)
            if not live:
                report.dataset(store)
        report.end(summary)
    return summary


def _findings(
    each: Input, arguments: argparse.Namespace, settings: CheckSettings, store: Store, summary: Summary
) -> Iterator[Finding]:
    """Check an input, and yield its findings as they are kept in the store."""
    if each.fault is not None and each.fault.code in settings.selection:
        store.add_findings([each.fault])
        yield each.fault
    if each.task is None:
        return
    tell_format(each.task.dataset, arguments.format)
    with closing(
        Checker(
            each.task,
            settings.target,
            policy=policy_of(arguments, each.task),
            decode=not arguments.no_decode,
            codes=settings.selection,
            limit=arguments.limit,
        )
    ) as checker:
        for report in checker.check(store, arguments.workers):
            summary.rows += report.number is not None
            yield from report.findings


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
        return Input(paths[0], task_of(arguments, paths))
    except MMPromptError as error:
        in_file = isinstance(error, DatasetError) or error.where.file == paths[0]
        if not in_file or not os.path.exists(paths[0]):
            raise
        return Input(paths[0], None, dataset_fault(error, paths[0]))


@contextmanager
def _writing(path: str | None) -> Iterator[Write]:
    """Open the output for text."""
    if path is None:
        if sys.stdout is None:
            raise TaskError("standard output is closed", "name a file with --output-file")
        stream, at_once = sys.stdout.buffer, sys.stdout.isatty()

        def write(text: str) -> None:
            stream.write(text.encode("utf-8", "backslashreplace"))
            if at_once:
                stream.flush()

        sys.stdout.flush()
        yield write
        stream.flush()
        return
    with output(path) as writer:
        yield lambda text: writer.write([text.encode("utf-8", "backslashreplace")])
        writer.flush()
