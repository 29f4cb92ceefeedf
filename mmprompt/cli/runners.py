"""``mmprompt lm-eval`` and ``mmprompt evalscope``: the runner's own command line, with our plugin registered."""

from __future__ import annotations

import argparse
import importlib
import traceback
from typing import TYPE_CHECKING

from mmprompt.cli import FINDINGS, OK, say

if TYPE_CHECKING:
    from mmprompt.cli import Commands

RUNNERS = {"lm-eval": "lm_eval", "evalscope": "evalscope"}
"""The commands, and the modules of ``plugins`` that run them."""


def add_parsers(commands: Commands) -> None:
    """Add the commands to the command line."""
    for name in RUNNERS:
        parser = commands.add_parser(
            name,
            help=f"run {name} with mmprompt's plugin",
            description=f"Run {name}'s own command line with mmprompt's plugin registered. All words are its own.",
            add_help=False,
            prefix_chars="\0",  # every word is the runner's
        )
        parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS")
        parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the runner, and return the exit code: 1 if rows cannot be asked.

    Raises:
        TaskError: the runner is not installed.
        SystemExit: the runner ends so.
    """
    from mmprompt.errors import MMPromptError, TaskError  # noqa: PLC0415  # loads with the command
    from mmprompt.errors.findings import Finding  # noqa: PLC0415  # loads with the command
    from mmprompt.plugins.runners import runner_named  # noqa: PLC0415  # loads with the command

    name = arguments.command
    runner = runner_named(name)
    if runner.version is None:
        raise TaskError(f"{name} is not installed", runner.install)
    plugin = importlib.import_module(f"mmprompt.plugins.{RUNNERS[name]}")
    try:
        plugin.run_command(arguments.arguments)
    except MMPromptError as error:
        for line in str(Finding.of(error)).split("\n"):
            say(f"mmprompt: {line}" if line[:1] != " " else line)
        return FINDINGS
    except Exception:  # noqa: BLE001  # a fault of the runner's, which it would show itself
        traceback.print_exc()
        return FINDINGS
    return OK
