"""``mmprompt convert``: writes a dataset in another format."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mmprompt.cli import FINDINGS, OK, say
from mmprompt.cli.dataset_options import add_dataset_options, dataset_options
from mmprompt.cli.task_options import add_drop_option, drop_last, drop_notes

if TYPE_CHECKING:
    from mmprompt.cli import Commands
    from mmprompt.cli.report import ErrorReport
    from mmprompt.datasets.sample import Row
    from mmprompt.errors import MMPromptError
    from mmprompt.tasks.convert import ConvertReport
    from mmprompt.tasks.task import Task

_EPILOG = """\
examples:
  mmprompt convert test-00000-of-00001.parquet questions.jsonl --to openai
  mmprompt convert MMBench_DEV_EN.tsv mmbench --to imagefolder
  mmprompt convert vqa.csv vqa.tar --to webdataset --map pic=image --map Q=question
  mmprompt convert train.json train.parquet --to parquet --store embed
  mmprompt convert vqa.jsonl vqa --to croissant
  mmprompt convert chats.jsonl rows.csv --to csv --drop-last-assistant

A row that the format cannot hold is reported on standard error and left out; the
exit code is then 1.
"""


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "convert",
        help="write a dataset in another format",
        description="Write a dataset in another format.",
        epilog=_EPILOG,
    )
    parser.add_argument("input", metavar="IN", help="a file, a folder, or a pattern such as 'data/*.parquet'")
    parser.add_argument("output", metavar="OUT", help="the file to write; for imagefolder and croissant a new folder")
    parser.add_argument("--to", required=True, metavar="FORMAT", help="the format to write")
    store = "media as bytes (embed), as files beside the output (files), or by their names (keep)"
    parser.add_argument("--store", metavar="HOW", help=store)
    parser.add_argument(
        "--media-root", action="append", default=[], metavar="DIR", help="media may lie here (repeatable)"
    )
    errors = "also write every error to this file, one JSON object a line"
    parser.add_argument("--errors", metavar="FILE.jsonl", help=errors)
    rows = parser.add_argument_group("how the dataset is read")
    add_dataset_options(rows)
    add_drop_option(rows)
    parser.set_defaults(run=run, replaces=("output", "errors"))


def run(arguments: argparse.Namespace) -> int:
    """Convert, and return the exit code.

    Raises:
        MMPromptError: the dataset or an option is wrong.
        OSError: the output cannot be written.
    """
    from mmprompt.cli.report import error_report, recorded  # noqa: PLC0415  # loads with the command
    from mmprompt.datasets.output import check_output  # noqa: PLC0415  # loads with the command
    from mmprompt.tasks.convert import NothingWrittenError  # noqa: PLC0415  # loads with the command
    from mmprompt.tasks.load import dataset_task  # noqa: PLC0415  # loads with the command

    check_output(arguments.errors)
    with recorded(arguments.errors):
        task = dataset_task(arguments.input, **dataset_options(arguments))
        drop_last(arguments, task.dataset, task)
    report, nothing = None, None
    with error_report(arguments.errors) as errors:
        try:
            report = _converted(arguments, task, errors)
        except NothingWrittenError as error:
            nothing = error
    notes = [] if report is None else [*report.notes, *drop_notes(task)]
    for line in [*errors.texts(), *[f"note: {note.finding}" for note in notes]]:
        say(line)
    if report is None:
        say(f"mmprompt: {nothing}")
        return FINDINGS
    left = f", {report.failed} left out" if report.failed else ""
    say(f"mmprompt: {report.written} rows written to {arguments.output}{left}")
    return FINDINGS if report.failed else OK


def _converted(arguments: argparse.Namespace, task: Task, errors: ErrorReport) -> ConvertReport:
    from mmprompt.render.builder import FailedRow  # noqa: PLC0415  # loads with the command
    from mmprompt.tasks.convert import convert_task  # noqa: PLC0415  # loads with the command
    from mmprompt.tasks.media import task_policy  # noqa: PLC0415  # loads with the command

    policy = task_policy(task, roots=arguments.media_root)
    errors.missing.roots = policy.roots

    def report(row: Row, error: MMPromptError, number: int) -> None:
        errors.report(FailedRow(row, error), number, number + 1)

    return convert_task(
        task,
        arguments.output,
        to=arguments.to,
        store=arguments.store,
        mapped=frozenset(dataset_options(arguments)["map_columns"]),
        policy=policy,
        on_failed=report,
    )
