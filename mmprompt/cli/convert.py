"""``mmprompt convert``: writes a dataset in another format."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mmprompt.cli import FINDINGS, OK, say
from mmprompt.cli.dataset_options import add_dataset_options, dataset_options

if TYPE_CHECKING:
    from mmprompt.cli import Commands

_EPILOG = """\
examples:
  mmprompt convert test-00000-of-00001.parquet questions.jsonl --to openai
  mmprompt convert MMBench_DEV_EN.tsv mmbench --to imagefolder
  mmprompt convert vqa.csv vqa.tar --to webdataset --map pic=image --map Q=question
  mmprompt convert train.json train.parquet --to parquet --store embed
  mmprompt convert vqa.jsonl vqa --to croissant

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
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("input", metavar="IN", help="a file, a folder, or a pattern such as 'data/*.parquet'")
    parser.add_argument("output", metavar="OUT", help="the file to write; for imagefolder and croissant a new folder")
    parser.add_argument("--to", required=True, metavar="FORMAT", help="the format to write")
    store = "media as bytes (embed), as files beside the output (files), or by their names (keep)"
    parser.add_argument("--store", metavar="HOW", help=store)
    parser.add_argument(
        "--media-root", action="append", default=[], metavar="DIR", help="media may lie here (repeatable)"
    )
    add_dataset_options(parser.add_argument_group("how the dataset is read"))
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Convert, and return the exit code.

    Raises:
        MMPromptError: the dataset or an option is wrong.
        OSError: the output cannot be written.
    """
    from mmprompt.cli.report import ErrorReport  # noqa: PLC0415  # loads with the command
    from mmprompt.errors import RowError  # noqa: PLC0415  # loads with the command
    from mmprompt.render.builder import FailedRow  # noqa: PLC0415  # loads with the command
    from mmprompt.tasks.convert import NothingWrittenError, convert_dataset  # noqa: PLC0415  # loads with the command

    errors = ErrorReport(optional=False)
    try:
        report = convert_dataset(
            arguments.input,
            arguments.output,
            to=arguments.to,
            store=arguments.store,
            media_roots=arguments.media_root,
            on_error=lambda error: errors.report(FailedRow(RowError(error.what), error), None),
            **dataset_options(arguments),
        )
    except NothingWrittenError as nothing:
        for line in errors.texts():
            say(line)
        say(f"mmprompt: {nothing}")
        return FINDINGS
    for line in [*errors.texts(), *[f"note: {note.finding}" for note in report.notes]]:
        say(line)
    left = f", {report.failed} left out" if report.failed else ""
    say(f"mmprompt: {report.written} rows written to {arguments.output}{left}")
    return FINDINGS if report.failed else OK
