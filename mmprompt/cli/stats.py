"""``mmprompt stats``: tells what a dataset is like, in numbers."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from mmprompt.cli import OK, printable, say
from mmprompt.cli.task_options import add_access_options, add_row_options, natural, policy_of, task_of
from mmprompt.errors import TaskError, nearest, shown

if TYPE_CHECKING:
    from mmprompt.check.statistics import Statistics
    from mmprompt.cli import Commands
    from mmprompt.tasks.task import Task

_FORMATS = ("text", "json")
_EPILOG = """\
examples:
  mmprompt stats vqa.jsonl
  mmprompt stats task.yaml --output-format json > numbers.json

Media are looked into, so that their sides and lengths are known. A row that
cannot be read counts as a row; mmprompt check says what is wrong with it.
"""


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "stats",
        help="tell what a dataset is like, in numbers",
        description="Tell what a dataset is like: rows, texts, answers, and sizes, formats and lengths of media.",
        epilog=_EPILOG,
    )
    what = "a task file, or a dataset: files, a folder, a pattern, or - for standard input"
    parser.add_argument("input", nargs="+", metavar="DATASET_OR_TASK", help=what)
    parser.add_argument("--output-format", default="text", metavar="FORMAT", help="text or json")
    parser.add_argument("--no-decode", action="store_true", help="do not look into media")
    rows = parser.add_argument_group("which rows")
    add_row_options(rows)
    workers = "threads that read rows, each with one decoding process (1)"
    rows.add_argument("--workers", type=natural, default=1, metavar="N", help=workers)
    add_access_options(parser.add_argument_group("what may be read"))
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Count, print the numbers, and return the exit code.

    Raises:
        MMPromptError: an option is wrong, or the dataset cannot be read.
    """
    if arguments.output_format not in _FORMATS:
        named = shown(arguments.output_format)
        raise TaskError(f"unknown output format {named}", nearest(arguments.output_format, _FORMATS))
    task = task_of(arguments, arguments.input)
    found = _counted(arguments, task)
    if arguments.output_format == "json":
        text = json.dumps(found.data, indent=2)
    else:
        text = "\n".join(printable(line) for line in _lines(found))
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
    return OK


def _counted(arguments: argparse.Namespace, task: Task) -> Statistics:
    from mmprompt.check.checker import Checker  # noqa: PLC0415  # loads with the command
    from mmprompt.check.statistics import statistics_of  # noqa: PLC0415  # loads with the command
    from mmprompt.check.store import Store  # noqa: PLC0415  # loads with the command

    checker = Checker(
        task,
        policy=policy_of(arguments, task),
        decode=not arguments.no_decode,
        codes=("MM000",),
        limit=arguments.limit,
    )
    with Store() as store, closing(checker):
        for _ in checker.check(store, arguments.workers):
            pass
        for finding in store.findings():  # the dataset breaks off
            say(str(finding))
        found = statistics_of(store)
        [(read,)] = store.query("SELECT COUNT(*) FROM samples")
        if unread := found.rows - read:
            say(f"mmprompt: {unread:,} of {found.rows:,} rows cannot be read; mmprompt check says why")
        return found


def _lines(found: Statistics) -> Iterator[str]:
    yield f"rows: {found.rows:,}"
    for modality, count in found.media.items():
        yield f"{modality}: {count:,}, {found.distinct_media.get(modality, 0):,} distinct"
    for media_type, count in found.formats.items():
        yield f"  {media_type}: {count:,}"
    for each in found.distributions:
        numbers = ", ".join(
            f"{name} {_number(value)}"
            for name, value in (("least", each.least), ("median", each.median), ("most", each.most))
        )
        total = f", all {_number(each.total)}" if each.unit in {"bytes", "seconds"} else ""
        yield f"{each.name}, {each.unit}: {numbers}{total}"
    yield from _token_lines(found)
    yield f"answers: {found.distinct_answers:,} distinct"
    for answer, count in found.answers.items():
        yield f"  {count:,} {answer}"
    if left := found.distinct_answers - len(found.answers):
        yield f"  … and {left:,} more"


def _token_lines(found: Statistics) -> Iterator[str]:
    """Yield what targets count for the media; texts are told in characters, whose tokens depend on the model."""
    if not found.media:
        return
    yield "tokens of media:"
    for target, count in found.tokens.items():
        if count is not None:
            media = [f"{modality} {tokens:,}" for modality, tokens in count.media.items()]
            media += [f"{count.uncounted:,} media without a count"] if count.uncounted else []
            yield f"  {target}: {', '.join(media)} ({count.models})"
    others = [target for target, count in found.tokens.items() if count is None]
    yield f"  {', '.join(others)}: depends on the model"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
