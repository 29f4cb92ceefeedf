"""``pytest`` run on a project within the process of the tests, or in one of its own.

The first saves what a new process takes to load: pytest, our package and its libraries, each time half a second. What is
about the process itself, such as the modules that it loads, takes the second.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import called_here

OTHERS = ("cacheprovider", "hypothesispytest", "anyio", "xdist", "xdist.looponfail")
"""Plugins that take longer to start than the projects; ``-p`` may name one that is not there."""


def pytest_here(project: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``pytest`` in the folder of a project, within this process."""
    with pytest.MonkeyPatch.context() as here, _own_modules(project):
        here.setattr(sys, "path", sys.path[:])
        for name in set(os.environ) - set(_environment()):
            here.delenv(name)
        for name, value in environment.items():
            here.setenv(name, value)
        done = called_here(lambda words: int(pytest.main(words)), _words(arguments), cwd=project)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def pytest_process(project: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``pytest`` in the folder of a project, as a process of its own."""
    words = [sys.executable, "-m", "pytest", *_words(arguments)]
    given = {**_environment(), **environment}
    return subprocess.run(
        words, cwd=project, env=given, capture_output=True, encoding="utf-8", timeout=120, check=False
    )


def _words(arguments: tuple[str, ...]) -> list[str]:
    left_out = [name for name in OTHERS if not ("-n" in arguments and name.startswith("xdist"))]
    return [*(word for name in left_out for word in ("-p", f"no:{name}")), *arguments]


def _environment() -> dict[str, str]:
    """The environment without what it says of pytest, of models and of keys."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("MMPROMPT_", "PYTEST_", "OPENAI_"))}


@contextmanager
def _own_modules(project: Path) -> Iterator[None]:
    """Let a project have modules that are named as some of ours, and forget them."""
    names = {file.stem for file in project.rglob("*.py")}
    ours = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    try:
        yield
    finally:
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(ours)
