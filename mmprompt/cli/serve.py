"""``mmprompt serve``: answers OpenAI's chat API on the loopback address with the built-in or a local model."""

from __future__ import annotations

import argparse
from contextlib import closing, suppress
from typing import TYPE_CHECKING, cast

from mmprompt.cli import OK, say
from mmprompt.cli.task_options import port

if TYPE_CHECKING:
    from mmprompt.cli import Commands
    from mmprompt.run.server import ServedModel

_EPILOG = """\
examples:
  mmprompt serve builtin:shapes
  mmprompt serve ./my-model --port 8000

The one line on standard output is the base URL of the API, once it answers.
Ctrl-C or SIGTERM ends the server.
"""


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "serve",
        help="answer OpenAI's API on this machine, for trying runners",
        description="Answer OpenAI's chat API on 127.0.0.1, for trying runners and tests.",
        epilog=_EPILOG,
    )
    parser.add_argument("model", metavar="MODEL", help="builtin:shapes, or the folder of a local model")
    parser.add_argument("--port", type=port, default=0, metavar="N", help="the port; by default a free one")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until the process is told to end, and return the exit code.

    Raises:
        MMPromptError: the model cannot be loaded, or the port cannot be used.
    """
    from mmprompt.run.interruption import ended_by_signals  # noqa: PLC0415  # loads with the command
    from mmprompt.run.models import model_here  # noqa: PLC0415  # loads with the command
    from mmprompt.run.server import ModelServer  # noqa: PLC0415  # loads with the command

    with (
        closing(cast("ServedModel", model_here(arguments.model))) as model,
        ModelServer(model, arguments.port) as server,
        suppress(KeyboardInterrupt),
        ended_by_signals(),
    ):
        print(server.url, flush=True)  # noqa: T201  # the answer goes to standard output
        say(f"mmprompt: {model.name} is served; Ctrl-C ends it")
        server.serve_forever()
    return OK
