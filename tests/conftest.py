from __future__ import annotations

import compileall
import gc
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

import pytest
from command_line import run_here

import mmprompt

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
PACKAGE = Path(mmprompt.__file__).resolve().parent
Command = Callable[..., "subprocess.CompletedProcess[bytes]"]


class _AsUsersImportIt:
    """Finds the modules of the package before pytest does.

    pytest rewrites the asserts of every package that brings a plugin, so it compiles each module again.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        return PathFinder.find_spec(name, path) if name.startswith("mmprompt.") else None


sys.meta_path.insert(0, _AsUsersImportIt)


def _leave_aside_what_a_developer_has_set() -> None:
    """Let no proxy, key, server or colour of the environment reach the tests and what they start.

    The tests, and the hundreds of interpreters that they start, may also keep what they compile, which takes them half
    their time. The processes that decode write nothing, so what they import is compiled here.
    """
    ours = {"OPENAI_API_KEY", "MMPROMPT_API_KEY", "MMPROMPT_BASE_URL", "MMPROMPT_MODEL"}
    terminal = {"COLUMNS", "LINES", "FORCE_COLOR", "PY_COLORS"}
    for name in list(os.environ):
        if name in ours | terminal | {"PYTHONDONTWRITEBYTECODE"} or name.lower().endswith("_proxy"):
            del os.environ[name]
    sys.dont_write_bytecode = False
    compileall.compile_dir(PACKAGE / "media", quiet=2)
    # the matrices of the built-in model are small: to share them out among threads takes eight times as long
    os.environ["OPENBLAS_NUM_THREADS"] = "1"


def pytest_configure(config: pytest.Config) -> None:
    """Have hypothesis draw the same examples each time, and never ask how long one took.

    A loaded machine is no fault, and a change must not fail for an example that was drawn just then: new ones are
    looked for by ``--hypothesis-profile=search``, and by fuzz/run.py. A quarter of them is drawn where the slow tests are
    left out; a test that asks for another number asks for a multiple of the profile's.
    """
    _leave_aside_what_a_developer_has_set()
    if config.getoption("dist", "no") == "load":  # of xdist: -n alone says so
        config.option.dist = "worksteal"  # the tests of a module stay together, and with them what they share
    if config.pluginmanager.hasplugin("hypothesispytest"):  # not beside the runners
        from hypothesis import HealthCheck, settings

        patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
        settings.register_profile("search", patient)
        count = 25 if config.option.markexpr == "not slow" else 100
        settings.register_profile("suite", patient, derandomize=True, max_examples=count)
        if not config.getoption("--hypothesis-profile"):
            settings.load_profile("suite")


def pytest_collection_finish() -> None:
    """Spare each collection of garbage, of which tests ask for many, the half million objects of imported libraries."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def own_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the targets that a test registers: a check of all targets would take them for shipped ones."""
    monkeypatch.setattr("mmprompt.targets.limits._REGISTERED", {})


@pytest.fixture(scope="session")
def tour() -> Path:
    return FIXTURES / "tour"


@pytest.fixture(scope="session")
def broken() -> Path:
    return FIXTURES / "broken"


@pytest.fixture(scope="session")
def command_environment() -> dict[str, str]:
    """The environment in which ``python -m mmprompt`` is the package under test, whatever the working directory."""
    return {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}


@pytest.fixture(scope="session")
def interrupted_environment(command_environment: dict[str, str]) -> dict[str, str]:
    """The environment of a command that a test interrupts: coverage is not measured there.

    An interrupt that comes while its tracer holds a lock would leave the lock held, and the command waiting for it.
    """
    return {name: value for name, value in command_environment.items() if not name.startswith("COVERAGE_")}


@pytest.fixture(scope="session")
def command() -> Command:
    """Run ``mmprompt`` within this process; what is about the process itself takes ``process``."""
    return run_here


@pytest.fixture(scope="session")
def process(command_environment: dict[str, str]) -> Command:
    """Run ``mmprompt`` as its users do: a process of its own."""

    def run(
        *arguments: object,
        stdin: bytes = b"",
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        **more: Any,
    ) -> subprocess.CompletedProcess[bytes]:
        words = [sys.executable, "-m", "mmprompt", *map(str, arguments)]
        environment = {**command_environment, **(env or {})}
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        return subprocess.run(words, input=stdin, cwd=cwd, env=environment, timeout=60, check=False, **streams)

    return run
