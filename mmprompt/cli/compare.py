"""``mmprompt compare``: says which of two runs over the same rows is better, and how sure that is."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mmprompt.cli import OK, say
from mmprompt.cli.score import add_scorer_options, json_of, print_lines, write_report
from mmprompt.errors import TaskError, shown

if TYPE_CHECKING:
    from mmprompt.cli import Commands

_EPILOG = """\
examples:
  mmprompt compare vqa-qwen.jsonl vqa-llama.jsonl
  mmprompt compare before.jsonl after.jsonl --scorer contains --report changes.json

Rows are paired by number, id and turn. The p-value is that of McNemar's exact
test, for scores of 0 and 1; the interval of the difference is from a paired
bootstrap. mmprompt view shows the rows side by side with their media.
"""


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "compare",
        help="compare two runs over the same rows",
        description="Compare the replies of two runs over the same rows.",
        epilog=_EPILOG,
    )
    parser.add_argument("before", metavar="JOURNAL", help="the journal of the first run")
    parser.add_argument("after", metavar="OTHER", help="the journal of the second run")
    add_scorer_options(parser)
    parser.add_argument("--report", metavar="FILE.json", help="also write all numbers as JSON")
    parser.set_defaults(run=run, replaces=("report",))


def run(arguments: argparse.Namespace) -> int:
    """Compare, print the table, and return the exit code.

    Raises:
        MMPromptError: a file is not a journal, or the two do not belong together.
        OSError: a file cannot be read or written.
    """
    from mmprompt.datasets.output import check_output  # noqa: PLC0415  # loads with the command
    from mmprompt.run.compare import compare_journals  # noqa: PLC0415  # loads with the command
    from mmprompt.run.score_lines import comparison_data, comparison_lines  # noqa: PLC0415  # loads with the command

    if arguments.report is not None and not arguments.report.endswith(".json"):
        raise TaskError(f"--report {shown(arguments.report)} is not JSON", "end its name with .json")
    check_output(arguments.report)
    found = compare_journals(arguments.before, arguments.after, arguments.scorer, index_base=arguments.index_base)
    print_lines(comparison_lines(found))
    if arguments.report is not None:
        write_report(arguments.report, json_of(comparison_data(found)))
    for note in found.notes:
        say(f"note: {note.finding}")
    return OK
