"""``mmprompt`` run within the process of the tests, which saves a new one from loading all that the package imports.

What is about the process (its streams, signals, environment, memory or locale) takes the fixture ``process`` instead.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from mmprompt.cli import main


def run_here(*arguments: object, stdin: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run the command."""
    return called_here(main, [str(argument) for argument in arguments], stdin, cwd)


def called_here(
    call: Callable[[list[str]], int], words: list[str], stdin: bytes = b"", cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Call the main function of a command with files as its standard streams.

    They are those of C libraries and child processes too.
    """
    with pytest.MonkeyPatch.context() as here, ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        files[0].write(stdin)
        files[0].seek(0)
        for number, file in enumerate(files):
            kept = os.dup(number)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, number)
            os.dup2(file.fileno(), number)
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            how = {"encoding": "utf-8", "errors": "strict" if number < 2 else "backslashreplace", "newline": ""}
            stream = stack.enter_context(open(number, "w" if number else "r", closefd=False, **how))
            here.setattr(sys, name, stream)
        if cwd is not None:
            here.chdir(cwd)
        try:
            code = call(words)
        except SystemExit as left:
            code = int(str(left.code))
        sys.stdout.flush()
        sys.stderr.flush()
        for file in files:
            file.seek(0)
        return subprocess.CompletedProcess(words, code, files[1].read(), files[2].read())


def exit_code(process: subprocess.Popen[bytes]) -> int:
    """Return how a process ended as a shell says it: 130 for SIGINT, whether our code or the interpreter ends by it.

    If the signal comes while ``exec`` makes part of a module, Python ends itself by SIGINT after our code has ended.
    """
    return process.returncode if process.returncode >= 0 else 128 - process.returncode
