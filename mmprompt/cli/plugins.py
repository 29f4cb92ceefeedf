"""``mmprompt plugins``: the state of each runner's plugin, and examples to start from."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mmprompt.cli import FINDINGS, OK, printable, runners

if TYPE_CHECKING:
    from mmprompt.cli import Commands
    from mmprompt.plugins.catalog import State

_EPILOG = """\
examples:
  mmprompt plugins
  mmprompt plugins --init pytest my_tests

The exit code is 1 if a runner that is installed does not find or load its
plugin. A runner that is not installed does not count.
"""


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "plugins",
        help="show which runners are installed, and whether they load their plugin",
        description="Show which runners are installed, and whether they find and load their plugin.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "--init", nargs=2, metavar=("RUNNER", "DIR"), help="write an example for a runner: aisbench, inspect-ai, …"
    )
    parser.set_defaults(run=run)
    runners.add_parsers(commands)


def run(arguments: argparse.Namespace) -> int:
    """Print the states, or write the example, and return the exit code.

    Raises:
        MMPromptError: the runner is unknown, or its files exist already.
        OSError: the example cannot be written.
    """
    if arguments.init is not None:
        from mmprompt.plugins.examples import write_example  # noqa: PLC0415  # loads with the command

        for path in write_example(*arguments.init):
            print(printable(path))  # noqa: T201  # the answer goes to standard output
        return OK
    from mmprompt.plugins.catalog import state_of  # noqa: PLC0415  # loads with the command
    from mmprompt.plugins.runners import RUNNERS  # noqa: PLC0415  # loads with the command

    sound = True
    for runner in RUNNERS:
        state = state_of(runner)
        sound = sound and state.sound
        for line in _lines(state):
            print(printable(line), flush=True)  # noqa: T201  # the answer goes to standard output
    return OK if sound else FINDINGS


def _lines(state: State) -> list[str]:
    """Return the lines about one runner."""
    runner = state.runner
    if state.version is None:
        return [f"{runner.name:<12} not installed: {runner.install}"]
    missing = "no: mmprompt is not installed, or its installation is older than this plugin; pip install it again"
    return [
        f"{runner.name:<12} installed {state.version}, tested with {runner.tested}",
        f"{'':<12} registered: {state.registered or missing}",
        f"{'':<12} loads: {'no: ' + state.fault if state.fault else 'yes'}",
    ]
