"""``mmprompt check``: reports what is wrong or odd in a dataset or task."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mmprompt.cli import FINDINGS, OK
from mmprompt.cli.dataset_options import add_dataset_options, dataset_options

if TYPE_CHECKING:
    from mmprompt.cli import Commands


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "check", help="report what is wrong in a dataset", description="Report what is wrong in a dataset."
    )
    parser.add_argument("input", nargs="+", metavar="DATASET_OR_TASK", help="a dataset or a task file")
    add_dataset_options(parser.add_argument_group("which rows"))
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="decoding processes")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Check, and return the exit code.

    Raises:
        MMPromptError: the task, the dataset or an option is wrong.
    """
    from mmprompt.check.checker import Checker  # noqa: PLC0415  # loads with the command
    from mmprompt.check.store import Store  # noqa: PLC0415  # loads with the command
    from mmprompt.tasks.load import dataset_task  # noqa: PLC0415  # loads with the command

    checker = Checker(dataset_task(arguments.input[0], **dataset_options(arguments)))
    found = False
    with Store() as store:
        for _ in checker.check(store, arguments.workers):
            pass
        for finding in store.findings():
            found = True
            print(finding)  # noqa: T201  # the answer goes to standard output
    checker.close()
    return FINDINGS if found else OK
