"""``mmprompt score``: scores the replies of a journal, without a model."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from mmprompt.cli import FINDINGS, OK, printable, say
from mmprompt.cli.task_options import integer, share
from mmprompt.errors import TaskError, shown

if TYPE_CHECKING:
    from mmprompt.cli import Commands
    from mmprompt.run.score import ScoreReport
    from mmprompt.run.tally import Score

_EPILOG = """\
examples:
  mmprompt score vqa-qwen.jsonl
  mmprompt score vqa-qwen.jsonl --scorer contains --group-by category
  mmprompt score vqa-qwen.jsonl --report report.html --fail-under 0.8

The journal is that of mmprompt run. The table goes to standard output, with
scores from 0 to 1 and their 95% intervals. A row that ended with an error
counts 0; "of answered" leaves such rows out.
"""


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "score",
        help="score the replies of a run again",
        description="Score the replies of a run again, without a model.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("journal", metavar="JOURNAL", help="the journal of mmprompt run")
    add_scorer_options(parser)
    column = "a column that the run kept, or turn; by default all that it kept (repeatable)"
    add("--group-by", action="append", default=[], metavar="COLUMN", help=column)
    add_report_options(parser)
    parser.set_defaults(run=run, replaces=("report",))


def add_scorer_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how replies are scored."""
    scorer = "exact, contains, choice, anls, vqa or number; by default that of the run"
    parser.add_argument("--scorer", metavar="NAME", help=scorer)
    base = "the number of the first choice, where answers are numbers of choices (0)"
    parser.add_argument("--index-base", type=integer, choices=(0, 1), metavar="N", help=base)


def add_report_options(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add the options that say what becomes of the scores."""
    parser.add_argument("--fail-under", type=share, metavar="X", help="exit with 1 if the score of all rows is below X")
    report = "also write a report: all numbers (.json), or a page with plots and the lowest scores (.html) (repeatable)"
    parser.add_argument("--report", action="append", default=[], metavar="FILE", help=report)


def run(arguments: argparse.Namespace) -> int:
    """Score, print the table, and return the exit code.

    Raises:
        MMPromptError: an option is wrong, or the file is not a journal.
        OSError: a file cannot be read or written.
    """
    from mmprompt.run.score import score_journal  # noqa: PLC0415  # loads with the command

    check_reports(arguments.report)
    report = score_journal(
        arguments.journal, arguments.scorer, group_by=arguments.group_by, index_base=arguments.index_base
    )
    return tell_scores(report, arguments.report, arguments.fail_under)


def check_reports(reports: Iterable[str]) -> None:
    """Refuse a report that cannot be written, before any work is done."""
    from mmprompt.datasets.output import check_output  # noqa: PLC0415  # loads with the command

    for path in reports:
        if os.path.splitext(path)[1] not in (".json", ".html"):
            raise TaskError(f"--report {shown(path)} is neither JSON nor HTML", "end its name with .json or .html")
        check_output(path)


def tell_scores(report: ScoreReport, reports: Iterable[str], fail_under: float | None) -> int:
    """Print the table of scores, write the reports, and return the exit code."""
    from mmprompt.run.score_lines import score_data, score_lines  # noqa: PLC0415  # loads with the command
    from mmprompt.run.score_page import score_page  # noqa: PLC0415  # loads with the command

    print_lines(score_lines(report))
    for path in reports:
        write_report(path, json_of(score_data(report)) if path.endswith(".json") else score_page(report))
    for note in report.notes:
        say(f"note: {note.finding}")
    return FINDINGS if fail_under is not None and _is_below(report.total, fail_under) else OK


def _is_below(total: Score, bound: float) -> bool:
    if total.score is None or total.score >= bound:
        return False
    say(f"mmprompt: the score {total.score:.4f} is below {bound:g} (--fail-under)")
    return True


def print_lines(lines: Iterable[str]) -> None:
    """Write lines to standard output in UTF-8, with control characters escaped."""
    text = "".join([printable(line) + "\n" for line in lines])
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))


def write_report(path: str, pieces: Iterable[str]) -> None:
    """Write a report, which appears under its name when it is complete.

    Raises:
        OSError: it cannot be written.
    """
    from mmprompt.datasets.output import output  # noqa: PLC0415  # loads with the command

    with output(path) as writer:
        for piece in pieces:
            writer.write([piece.encode("utf-8", "backslashreplace")])
        writer.flush()


def json_of(data: object) -> Iterator[str]:
    """Yield a report's data as indented JSON."""
    import json  # noqa: PLC0415  # loads with the command

    yield json.dumps(data, indent=2, ensure_ascii=False) + "\n"
