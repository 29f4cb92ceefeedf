"""``mmprompt check``: reports what is wrong or odd in datasets and tasks."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from mmprompt.cli import FINDINGS, OK, USAGE, say
from mmprompt.cli.task_options import (
    add_access_options,
    add_engine_options,
    add_row_options,
    check_engine_options,
    natural,
)

if TYPE_CHECKING:
    from mmprompt.cli import Commands

_EPILOG = """\
examples:
  mmprompt check vqa.jsonl
  mmprompt check task.yaml --target openai --workers 4
  mmprompt check vqa.csv --select MM2,MM3 --ignore MM303
  mmprompt check vqa.jsonl --output-format json --output-file findings.json
  mmprompt check vqa.jsonl --fix
  mmprompt check --explain MM204

Findings go out in the order of rows: errors (the row cannot be sent) and
warnings (it can, and something is odd). On a terminal they show as soon as they
are found, those on the whole dataset at the end. Each has a code: --explain
describes it. The exit code is 1 if there are any. What is a matter of taste
shows only when selected.
"""

_CODES = {
    "--select": "tell these codes only, such as MM2,MM301; ALL is every code (repeatable)",
    "--ignore": "do not tell these codes (repeatable)",
    "--extend-select": "tell these codes too (repeatable)",
}


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "check",
        help="report what is wrong in a dataset or a task",
        description="Report what is wrong in datasets and tasks.",
        epilog=_EPILOG,
    )
    what = "a task file, or a dataset: files, a folder, a pattern, or - for standard input"
    parser.add_argument("input", nargs="*", metavar="DATASET_OR_TASK", help=what)
    _add_rules(parser.add_argument_group("which findings"))
    _add_form(parser.add_argument_group("what is written"))
    _add_fixes(parser.add_argument_group("what is mended"))
    rows = parser.add_argument_group("which rows")
    add_row_options(rows)
    workers = "threads that check rows, each with one decoding process (1)"
    rows.add_argument("--workers", type=natural, metavar="N", help=workers)
    add_engine_options(rows, "check")
    add_access_options(parser.add_argument_group("what may be read"))
    parser.set_defaults(run=run, replaces=("output_file", "output"))


def _add_rules(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    for name, what in _CODES.items():
        add(name, action="append", default=[], metavar="CODES", help=what)
    target = "hold requests against what this target takes; by default against what all targets take"
    add("--target", metavar="TARGET", help=target)
    add("--against", metavar="FILE", help="another dataset, such as the training set, that must not hold the same rows")
    known = "a file of known findings, which are not reported; --write-baseline writes it"
    add("--baseline", metavar="FILE", help=known)
    add("--write-baseline", action="store_true", help="write all findings to the file of --baseline as known")
    add("--no-decode", action="store_true", help="do not look inside media")
    add("--explain", metavar="CODE", help="print the page of a rule, and do nothing else")


def _add_form(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--output-format", default="text", metavar="FORMAT", help="text, json, jsonl, sarif, junit, github or html")
    add("--output-file", metavar="FILE", help="where to write; by default standard output")
    resume = "go on with the run whose state lies in FILE.state, FILE being that of --output-file"
    add("--resume", action="store_true", help=resume)
    add("--statistics", action="store_true", help="count the findings by code, in place of telling each")
    add("--exit-zero", action="store_true", help="exit with 0 even if there are findings")


def _add_fixes(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--fix", action="store_true", help="write the dataset with the findings marked [*] mended: to NAME.fixed.EXT")
    add("--unsafe-fixes", action="store_true", help="mend also where the meaning of a row may change")
    add("--diff", action="store_true", help="print what --fix would change, and write nothing")
    add("-o", "--output", metavar="FILE", help="where --fix writes")


def run(arguments: argparse.Namespace) -> int:
    """Check, and return the exit code.

    Raises:
        MMPromptError: an option is wrong.
        OSError: the output cannot be written.
    """
    if arguments.explain is not None:
        from mmprompt.check.explanation import explanation  # noqa: PLC0415  # loads with the option

        sys.stdout.write(explanation(arguments.explain))
        return OK
    if not arguments.input:
        say("mmprompt check: name a dataset or a task file; see mmprompt check --help")
        return USAGE
    from mmprompt.cli.check_settings import CheckSettings, written_files  # noqa: PLC0415  # loads with the command
    from mmprompt.cli.checking import Run  # noqa: PLC0415  # loads with the command
    from mmprompt.media.outputs import replacing  # noqa: PLC0415  # loads with the command

    check_engine_options(arguments)
    written = written_files(arguments)
    with replacing(*written):
        settings = CheckSettings.of(arguments)
    project = settings.configuration
    if project.rules and project.lies_with(arguments.input):
        say(f"mmprompt: {project.file}, which lies with the data, chose the rules: {', '.join(project.rules)}")
    command = Run(arguments, settings)
    with replacing(settings.write_known, *written):
        summary = command.check()
    if arguments.diff:
        return FINDINGS if command.mended and not arguments.exit_zero else OK
    say(f"mmprompt: {summary}")
    if settings.write_known is not None:
        say(f"mmprompt: they are known now: {settings.write_known}")
        return OK
    return FINDINGS if summary.fails and not arguments.exit_zero else OK
