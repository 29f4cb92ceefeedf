"""The command line: one file per command, each of which calls one public function."""

from __future__ import annotations

import argparse
import atexit
import gc
import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NoReturn, TextIO, TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[_Parser]"  # noqa: SLF001  # the only name of this type

_COMMANDS = ("render", "run", "check", "stats", "score", "compare", "init", "convert", "serve", "view", "plugins")
"""The modules of the commands, in the order of the help. One that is named first is loaded alone."""

OK, FINDINGS, USAGE, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 130

_OBJECTS_BETWEEN_COLLECTIONS = 10_000

_EPILOG = """\
examples:
  mmprompt render vqa.jsonl -o requests.jsonl
  mmprompt render task.yaml --target openai --limit 10
  mmprompt run vqa.jsonl --base-url http://127.0.0.1:8000/v1 --model qwen
  mmprompt check vqa.jsonl
  mmprompt view vqa.jsonl
  mmprompt serve builtin:shapes --port 8000
  mmprompt init MMBench_DEV_EN.tsv
  mmprompt convert vqa.tsv vqa.parquet --to parquet
  mmprompt plugins
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``mmprompt`` and return its exit code.

    0 success, 1 findings or failed rows, 2 wrong usage, 3 internal error, 130 interrupted.

    Raises:
        SystemExit: the arguments are wrong, or ask for help.
    """
    from mmprompt.errors import MMPromptError  # noqa: PLC0415  # loads with the command line
    from mmprompt.errors.findings import Finding  # noqa: PLC0415  # loads with the command line

    if argv is None:
        _collect_rarely()
    try:
        arguments = _arguments(argv)
        if arguments.command is None:
            return USAGE
        with warnings.catch_warnings():
            # cells are parsed as Python lists too, and Python 3.12 warns about stray backslashes in them
            warnings.filterwarnings("ignore", category=SyntaxWarning, module="<unknown>")
            code = _run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        say("mmprompt: interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _silence(sys.stdout)
        return OK
    except MMPromptError as error:
        say(f"mmprompt: {Finding.of(error)}")
        return USAGE
    except OSError as error:
        say(f"mmprompt: {system_words(error)}")
        return USAGE
    except Exception as error:  # noqa: BLE001  # the outermost boundary: our own faults have an exit code
        if old := _too_old(error):
            say(f"mmprompt: {old}")
            return USAGE
        import traceback  # noqa: PLC0415  # only for a fault of ours

        traceback.print_exc()
        say("mmprompt: internal error; please report the lines above")
        return INTERNAL
    return code


def _run(arguments: argparse.Namespace) -> int:
    """Run the command, which reads none of the files that its arguments ``replaces`` name."""
    given = [getattr(arguments, name) for name in getattr(arguments, "replaces", ())]
    outputs = [path for value in given for path in (value if isinstance(value, list) else [value]) if path is not None]
    if outputs:
        from mmprompt.media.outputs import replacing  # noqa: PLC0415  # loads with an output

    with replacing(*outputs) if outputs else nullcontext():
        code: int = arguments.run(arguments)
    return code


def _collect_rarely() -> None:
    """Spare a process of our own most of the garbage collector's work: nearly all that a start makes stays."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    atexit.register(gc.freeze)  # a collection at the end would take every module apart, which takes 9 ms


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the arguments; without a command the help is printed."""
    parser = _Parser(
        prog="mmprompt",
        description="Turn dataset rows into model-ready multimodal requests.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", prog=parser.prog)
    words = sys.argv[1:] if argv is None else argv
    for name in words[:1] if words and words[0] in _COMMANDS else _COMMANDS:
        importlib.import_module(f"mmprompt.cli.{name}").add_parser(commands)
    command = next((word for word in words if not word.startswith("-")), None)
    if command is not None and command not in commands.choices:
        from mmprompt.errors import nearest, shown  # noqa: PLC0415  # only for a fault

        parser.error(f"unknown command {shown(command)}; {nearest(command, commands.choices)}")
    for each in (parser, *commands.choices.values()):
        each.words = words
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        commands.choices.get(arguments.command, parser).refuse(unknown)
    if arguments.command is None:
        parser.print_help(sys.stderr)
    return arguments


def _too_old(error: Exception) -> str:
    """Return which libraries are older than the package asks for, if the error is that a module lacks something."""
    if not isinstance(error, ImportError) and not isinstance(getattr(error, "obj", None), type(sys)):
        return ""
    from importlib.metadata import requires, version  # noqa: PLC0415  # only for a fault

    try:
        from packaging.requirements import Requirement  # noqa: PLC0415  # transformers brings it

        own = [each for each in map(Requirement, requires("mmprompt") or ()) if each.marker is None]
        found = {each: version(each.name) for each in own}
    except ImportError:  # it is not installed, or one of its libraries is not
        return ""
    old = [each for each in own if not each.specifier.contains(found[each], prereleases=True)]
    what = ", ".join(f"{each.name} {found[each]}" for each in old)
    wanted = " ".join(f"'{each.name}{each.specifier}'" for each in old)
    return f"{what} {'is' if len(old) == 1 else 'are'} older than mmprompt needs; pip install {wanted}" if old else ""


def system_words(error: OSError) -> str:
    """Return what the system says of a file that cannot be read or written."""
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"no such file: {error.filename}; check the path"
    return f"{error.strerror or 'cannot write'}: {error.filename or 'output'}"


def say(text: str) -> None:
    """Write a line to standard error, with control characters (which may come from the data) escaped.

    A closed pipe or full disk there does not end the run: its output and exit code matter more.
    """
    if sys.stderr is not None:
        try:
            sys.stderr.write(printable(text) + "\n")
        except OSError:
            _silence(sys.stderr)


def printable(text: str) -> str:
    """Return text with control characters escaped."""
    return "".join([c if c.isprintable() else _escaped(c) for c in text])


def _escaped(character: str) -> str:
    return character if character == "\u3000" else character.encode("unicode_escape").decode("ascii")


class _Parser(argparse.ArgumentParser):
    """A parser that writes errors on one line. ``words`` are the words of the command line."""

    words: Sequence[str] = ()

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"formatter_class": argparse.RawDescriptionHelpFormatter, **options})

    def error(self, message: str) -> NoReturn:
        """Exit with an error, which also names the option nearest to the first one that does not exist.

        Of an option that other commands have, these are named.
        """
        from mmprompt.errors import nearest  # noqa: PLC0415  # only for a fault

        known = self._option_string_actions
        names = [word.partition("=")[0] for word in self.words if word[:2] == "--" and word != "--"]
        unknown = next((name for name in names if not any(option.startswith(name) for option in known)), None)
        if unknown is not None:
            others = ", ".join(_commands_with(unknown))
            hint = f"it is an option of {others}" if others else nearest(unknown, known)
            message += f"; {hint}" if unknown in message else f"; {unknown}: {hint}"
        say(f"{self.prog}: {message}; see {self.prog} --help")
        sys.exit(USAGE)

    def takes(self, option: str) -> bool:
        """Return whether there is an option of this name."""
        return option in self._option_string_actions

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Exit with an error that names the unknown arguments."""
        self.error(f"unrecognized arguments: {' '.join(word or repr('') for word in unknown)}")


def _commands_with(option: str) -> list[str]:
    """Return the commands that take an option."""
    commands = _Parser().add_subparsers()
    for name in _COMMANDS:
        importlib.import_module(f"mmprompt.cli.{name}").add_parser(commands)
    return [name for name, each in commands.choices.items() if each.takes(option)]


class _Version(argparse.Action):
    """Prints the version, which is loaded only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from mmprompt._version import __version__  # noqa: PLC0415  # loaded on use

        print(f"mmprompt {__version__}", flush=True)  # noqa: T201  # the answer goes to standard output
        parser.exit()


def _silence(stream: TextIO) -> None:
    """Point a standard stream at the null device, so that the interpreter can close it without an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
