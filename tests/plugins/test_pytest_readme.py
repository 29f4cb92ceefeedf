"""The examples of the pytest guide, run by the ``pytest`` command against a recording server."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from readme_blocks import blocks_of_runner

sys.path.insert(0, str(Path(__file__).parent))
from recording_server import recording_server  # beside this file

pytestmark = pytest.mark.runners
TESTS, COMMAND, FAILED, ROWS = blocks_of_runner("mmprompt/plugins/PYTEST.md", "pytest")
WRONG = 'def test_dog(vlm):\n    assert "dog" in vlm.ask("What is this?", image="cat.jpg")\n'


def reply(body: dict[str, Any]) -> str:
    return "The first one." if len(body["messages"]) > 2 else "A cat."


@pytest.fixture
def project(tmp_path: Path, tour: Path) -> Path:
    shutil.copytree(tour, tmp_path / "fixtures/tour")
    shutil.copy(tour / "media/chelsea.jpg", tmp_path / "cat.jpg")
    shutil.copy(tour / "media/coffee.jpg", tmp_path / "dog.jpg")
    (tmp_path / "pyproject.toml").touch()  # so that pytest looks no further up
    return tmp_path


def run(project: Path, environment: dict[str, str], test: str) -> tuple[str, list[dict[str, Any]]]:
    """Run a test file by the command that the guide shows, and return what it printed and the server got."""
    (project / "test_it.py").write_text(test, encoding="utf-8")
    with recording_server(reply) as server:
        program, *words = shlex.split(COMMAND.text.replace("http://127.0.0.1:8000/v1", server.base_url))
        assert program == "pytest"
        others = [f"-pno:{name}" for name in ("mmprompt", "cacheprovider", "xdist", "hypothesispytest", "anyio")]
        plugin = "-p", "mmprompt.plugins.pytest_plugin", *others
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *plugin, *words],
            cwd=project,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        return done.stdout + done.stderr, server.bodies


def test_the_first_tests_pass(project: Path, command_environment: dict[str, str]) -> None:
    printed, bodies = run(project, command_environment, TESTS.text)
    assert "2 passed" in printed, printed
    assert len(bodies) == 3


def test_a_failed_test_shows_what_was_asked(project: Path, command_environment: dict[str, str]) -> None:
    printed, _ = run(project, command_environment, WRONG)
    for line in FAILED.text.splitlines():
        assert line in printed, printed


def test_the_rows_of_a_dataset_are_asked(project: Path, command_environment: dict[str, str]) -> None:
    printed, bodies = run(project, command_environment, ROWS.text)
    assert re.search(r"\b25 failed", printed), printed  # the server finds a cat in each
    assert len(bodies) == 25
