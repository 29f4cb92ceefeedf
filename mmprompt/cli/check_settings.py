"""What the options of ``mmprompt check`` and the project's settings say together."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from mmprompt._version import __version__
from mmprompt.check.baseline import Baseline
from mmprompt.check.configuration import Configuration, project_configuration
from mmprompt.check.reports.formats import FORMATS, report_class
from mmprompt.check.reports.report import Report
from mmprompt.check.reports.text import StatisticsReport
from mmprompt.check.selection import Selection
from mmprompt.cli.task_options import other_dataset
from mmprompt.datasets.output import check_output
from mmprompt.errors import TaskError, nearest, shown
from mmprompt.errors.findings import Finding
from mmprompt.tasks.task import Task

_ASIDE = (
    *("input", "output_file", "output_format", "resume", "run", "replaces", "fix", "diff", "output", "unsafe_fixes"),
    *("statistics", "exit_zero", "workers"),
)
"""Options that change nothing in what a check finds."""


class CheckSettings(NamedTuple):
    """How a check runs. ``report`` is the class of its report; ``known`` are findings that are not reported.

    ``write_known`` is the file that gets all findings as known ones.
    """

    selection: Selection
    target: str | None
    workers: int
    report: type[Report]
    configuration: Configuration
    known: Baseline | None
    write_known: str | None

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> CheckSettings:
        """Return what the options say; each replaces the project's setting, but codes to ignore add up.

        Raises:
            MMPromptError: an option or a setting of the project is wrong.
            OSError: the baseline cannot be read.
        """
        project = project_configuration()
        given = {name: _codes_in(getattr(arguments, name)) for name in ("select", "ignore", "extend_select")}
        selection = Selection(
            given["select"] or project.select,
            [*project.ignore, *given["ignore"]],
            [*project.extend_select, *given["extend_select"]],
        )
        if arguments.resume and arguments.output_file is None:
            raise TaskError("--resume has no report to go on with", "name it with --output-file FILE")
        if (arguments.output is not None or arguments.unsafe_fixes) and not (arguments.fix or arguments.diff):
            given_option = "--unsafe-fixes" if arguments.output is None else "-o"
            raise TaskError(f"{given_option} is for --fix", "give both; --output-file names the report")
        baseline = arguments.baseline or project.own_baseline()
        if arguments.write_baseline and baseline is None:
            raise TaskError("--write-baseline has no file", "name it with --baseline FILE")
        if arguments.write_baseline and arguments.diff:
            raise TaskError("--diff writes nothing, and --write-baseline does", "give one of the two")
        if arguments.write_baseline and (of_report := _of_report(arguments)):
            raise TaskError(f"--write-baseline writes no report, and {of_report} is for one", "give one of the two")
        if arguments.write_baseline and baseline is not None:
            _require_baseline(baseline)
        for written in (arguments.output_file, arguments.output, baseline if arguments.write_baseline else None):
            check_output(written)
        return cls(
            selection,
            arguments.target or project.target,
            arguments.workers or project.workers or 1,
            _report(arguments),
            project,
            None if arguments.write_baseline or baseline is None else Baseline(baseline),
            baseline if arguments.write_baseline else None,
        )

    def keeps(self, finding: Finding) -> bool:
        """Return whether a finding is reported."""
        return not self.configuration.hides(finding) and (self.known is None or finding not in self.known)

    def signature(self, arguments: argparse.Namespace, paths: Sequence[str], task: Task | None) -> str:
        """Return what a run on an input is about; a run of another signature finds other things.

        It knows files by size and time. Media are not looked at.
        """
        options = {name: value for name, value in vars(arguments).items() if name not in _ASIDE}
        datasets = [] if task is None else [task.dataset, task.train]
        if task is not None and arguments.against not in (None, "-"):
            datasets.append(other_dataset(arguments, task))
        files = [*paths, *[file for dataset in datasets if dataset is not None for file in dataset.files]]
        states = [(path, *_state(path)) for path in dict.fromkeys(files)]
        known = None if self.known is None else self.known.digest
        about = [__version__, states, sorted(options.items()), self.target, self.selection.codes, known]
        return repr((about, self.configuration.ignored, self.report.thumbnails))


def _require_baseline(path: str) -> None:
    """Refuse to replace a file that holds something else than known findings.

    Raises:
        TaskError: it does.
    """
    if not os.path.isfile(path) or not os.path.getsize(path):
        return
    try:
        Baseline(path)
    except TaskError as error:
        what = f"{shown(path)} is not a baseline, and --write-baseline would replace it"
        raise TaskError(what, "move it away, or name another file") from error


def _state(path: str) -> tuple[int, int]:
    """Return the size and the time of the last change of a file; zeros if it is none."""
    if not os.path.isfile(path):
        return 0, 0
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def written_files(arguments: argparse.Namespace) -> list[str]:
    """Return the files that the options name and that are written, and those of the state."""
    named = [name for name in (arguments.output_file, arguments.output) if name is not None]
    return [*named, *state_files(arguments.output_file, len(arguments.input))]


def state_files(report: str | None, count: int) -> list[str]:
    """Return the files that keep the state of a check of so many inputs; none if the report goes to no regular file."""
    if report is None or report == "-" or report.startswith("/dev/"):
        return []
    if os.path.exists(report) and not os.path.isfile(report):
        return []
    return [f"{report}.state" + (f".{number + 1}" if number else "") for number in range(count)]


def _report(arguments: argparse.Namespace) -> type[Report]:
    name = arguments.output_format
    if name not in FORMATS:
        raise TaskError(f"unknown output format {shown(name)}", nearest(name, FORMATS))
    if not arguments.statistics:
        return report_class(name)
    if name != "text":
        raise TaskError("--statistics is a report of its own", "give it without --output-format")
    return StatisticsReport


def _of_report(arguments: argparse.Namespace) -> str | None:
    """Return the first option on the report that is given, or None."""
    given = {
        "--output-file": arguments.output_file is not None,
        "--output-format": arguments.output_format != "text",
        "--statistics": arguments.statistics,
    }
    return next((option for option, is_given in given.items() if is_given), None)


def _codes_in(given: Sequence[str]) -> list[str]:
    """Return the codes in the values of an option, which separate them by commas or blanks."""
    return [code for value in given for code in re.split(r"[,\s]+", value.strip()) if code]
