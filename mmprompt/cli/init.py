"""``mmprompt init``: a task file to start from, and its first prompt."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from mmprompt.cli import FINDINGS, OK, say
from mmprompt.cli.dataset_options import add_dataset_options, dataset_options
from mmprompt.cli.task_options import add_drop_option

if TYPE_CHECKING:
    from mmprompt.cli import Commands

_EPILOG = """\
examples:
  mmprompt init MMBench_DEV_EN.tsv
  mmprompt init data/vqa.jsonl -o vqa.yaml
  mmprompt init vqa.csv --map pic=image --map Q=question --map label=answer

The task file fits the columns of the dataset. Change what you like, then
run: mmprompt render task.yaml
"""


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "init",
        help="write a task file that fits a dataset, and show its first prompt",
        description="Write a task file that fits a dataset, with comments, and show its first prompt.",
        epilog=_EPILOG,
    )
    parser.add_argument("dataset", metavar="DATASET", help="the file of rows")
    parser.add_argument("-o", metavar="FILE", default="task.yaml", help="the task file to write (default: task.yaml)")
    root = "media may lie here: for the first prompt, since no task file may allow it by itself (repeatable)"
    parser.add_argument("--media-root", action="append", default=[], metavar="DIR", help=root)
    add_drop_option(parser)
    add_dataset_options(parser.add_argument_group("how the dataset is read, which the task file then says"))
    parser.set_defaults(run=run, replaces=("o",))


def run(arguments: argparse.Namespace) -> int:
    """Write the task file, show its first prompt, and return the exit code.

    Raises:
        MMPromptError: the dataset cannot be read, or holds nothing to ask.
        OSError: the task file cannot be written.
    """
    from mmprompt.cli.short_lines import short_chunks  # noqa: PLC0415  # loads with the command
    from mmprompt.datasets.output import check_output, output  # noqa: PLC0415  # loads with the command
    from mmprompt.datasets.read import open_dataset  # noqa: PLC0415  # loads with the command
    from mmprompt.errors import MMPromptError, TaskError, shown  # noqa: PLC0415  # loads with the command
    from mmprompt.errors.findings import Finding  # noqa: PLC0415  # loads with the command
    from mmprompt.tasks.grants import Grants  # noqa: PLC0415  # loads with the command
    from mmprompt.tasks.load import load_file  # noqa: PLC0415  # loads with the command
    from mmprompt.tasks.media import task_policy  # noqa: PLC0415  # loads with the command
    from mmprompt.tasks.starter import starter_task  # noqa: PLC0415  # loads with the command

    check_output(arguments.o)
    _check_input(arguments.dataset)
    options = dataset_options(arguments)
    columns = options.pop("map_columns")
    within = _roots_within(arguments)
    text, notes = starter_task(
        open_dataset(arguments.dataset, columns=columns, templates=True, **options),
        _section(arguments, columns),
        list(within.values()),
    )
    if os.path.lexists(arguments.o):
        raise TaskError(f"{shown(arguments.o)} exists already", "give another name with -o")
    with output(arguments.o) as writer:
        writer.write([text.encode("utf-8")])
    errors: list[MMPromptError] = []
    task = load_file(arguments.o, None, Grants(roots=tuple(arguments.media_root)))
    policy = task_policy(task, roots=arguments.media_root)
    request = next(iter(task.requests(policy=policy, on_error=errors.append)), None)
    for error in errors[:3]:
        say(str(Finding.of(error)))
    for note in notes:
        say(f"note: {note.finding}")
    if request is not None:
        sys.stdout.write(b"".join(short_chunks({"id": request.id, **request.unencoded}, newline=True)).decode("utf-8"))
    again = "".join([f" --media-root {root}" for root in arguments.media_root if root not in within])
    say(f"mmprompt: wrote {arguments.o}; next: mmprompt render {arguments.o}{again}")
    return OK if request is not None else FINDINGS


def _check_input(name: str) -> None:
    """Refuse an input that a task file cannot name as its dataset.

    Raises:
        TaskError: it is standard input, or a task file.
    """
    from mmprompt.errors import TaskError, shown  # noqa: PLC0415  # loads with the command
    from mmprompt.tasks.files import is_task_file  # noqa: PLC0415  # loads with the command

    if name == "-":
        raise TaskError("a task file cannot name standard input", "save it to a file, and give its name")
    if is_task_file(name):
        raise TaskError(
            f"{shown(name)} is a task file already", f"render it: mmprompt render {name}, or give a dataset"
        )


def _section(arguments: argparse.Namespace, columns: dict[str, str]) -> dict[str, Any]:
    """Return the section ``dataset`` of the task file: the path and the options that are given."""
    folder = os.path.dirname(arguments.o) or "."
    section = {
        "path": os.path.relpath(arguments.dataset, folder),
        "format": arguments.format,
        "key": arguments.key,
        "join": [os.path.relpath(name, folder) for name in arguments.join],
        "columns": columns,
        "splits": arguments.split,
        "encoding": arguments.encoding,
        "drop_last_assistant": arguments.drop_last_assistant,
    }
    return {name: value for name, value in section.items() if value}


def _roots_within(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the media roots below the folder of the task file, which it may name itself, and their names there."""
    folder = os.path.dirname(arguments.o) or "."
    names = {root: os.path.relpath(root, folder) for root in arguments.media_root}
    return {root: name for root, name in names.items() if name.split(os.sep)[0] != os.pardir}
