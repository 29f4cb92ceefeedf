"""The command line: one file per command, each of which calls one public function."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

OK, FINDINGS, USAGE, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 130

_EPILOG = """\
examples:
  mmprompt render vqa.jsonl -o requests.jsonl
  mmprompt render task.yaml --target openai --limit 10
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``mmprompt`` and return its exit code: 0 fine, 1 findings or failed rows, 2 usage, 3 internal, 130 interrupted."""
    from mmprompt.cli import render  # noqa: PLC0415  # the commands load with the command line
    from mmprompt.errors import MMPromptError  # noqa: PLC0415  # likewise

    parser = argparse.ArgumentParser(
        prog="mmprompt",
        description="Turn dataset rows into model-ready multimodal requests.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    render.add_parser(commands)
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help(sys.stderr)
        return USAGE
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _silence_stdout()
        return OK
    except MMPromptError as error:
        print(f"mmprompt: {error}", file=sys.stderr)  # noqa: T201  # the command line speaks to the user
        return USAGE
    except OSError as error:
        print(f"mmprompt: {error.strerror or 'cannot write'}: {error.filename or 'output'}", file=sys.stderr)  # noqa: T201
        return USAGE
    return code


class _Version(argparse.Action):
    """Prints the version, which is loaded only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from mmprompt._version import __version__  # noqa: PLC0415  # loaded on use

        print(f"mmprompt {__version__}")  # noqa: T201  # the answer goes to standard output
        parser.exit()


def _silence_stdout() -> None:
    """Point standard output at nothing, so that the interpreter does not complain of the closed pipe at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
