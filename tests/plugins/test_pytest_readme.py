"""The examples of the pytest guide and of ``mmprompt plugins --init pytest``, against the model that the guide starts."""

from __future__ import annotations

import re
import shlex
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pytest_command import pytest_here
from readme_blocks import ROOT, blocks_of_runner

from mmprompt.plugins.examples import write_example
from mmprompt.run.server import ModelServer
from mmprompt.run.shapes.model import ShapesModel

pytestmark = pytest.mark.runners
TESTS, COMMAND, FAILED, ROWS = blocks_of_runner("mmprompt/plugins/PYTEST.md", "pytest")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The base URL of what ``mmprompt serve builtin:shapes`` serves."""
    with closing(ShapesModel()) as model, ModelServer(model) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server.url
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "fixtures/shapes", tmp_path / "fixtures/shapes")
    (tmp_path / "pyproject.toml").touch()  # so that pytest looks no further up
    return tmp_path


def run(folder: Path, command: str) -> str:
    """Run a ``pytest`` command in a folder, and return what it prints."""
    program, *words = shlex.split(command)
    assert program == "pytest"
    done = pytest_here(folder, "-p", "no:mmprompt", "-p", "mmprompt.plugins.pytest_plugin", *words)
    return done.stdout + done.stderr


def run_guide(project: Path, url: str, test: str) -> str:
    """Run a test file by the command that the guide shows."""
    command = COMMAND.text.replace("http://127.0.0.1:8000/v1", url)
    (project / shlex.split(command)[1]).write_text(test, encoding="utf-8")
    return run(project, command)


def test_the_first_tests_pass(project: Path, url: str) -> None:
    printed = run_guide(project, url, TESTS.text)
    assert "2 passed" in printed, printed


def test_a_failed_test_shows_what_was_asked(project: Path, url: str) -> None:
    printed = run_guide(project, url, TESTS.text.replace('== "purple"', '== "yellow"'))
    assert "1 failed, 1 passed" in printed, printed
    for line in FAILED.text.splitlines():
        assert line in printed, printed


def test_the_rows_of_a_dataset_are_asked(project: Path, url: str) -> None:
    printed = run_guide(project, url, ROWS.text)
    assert re.search(r"\b60 passed", printed), printed


def test_the_example_asks_what_the_built_in_model_answers(project: Path, url: str) -> None:
    write_example("pytest", str(project / "mine"))
    guide = (project / "mine/README.md").read_text(encoding="utf-8")
    [command] = re.findall(r"^    (pytest .*)$", guide, re.MULTILINE)
    command = command.replace("http://127.0.0.1:8000/v1", url).replace("NAME", "builtin:shapes")
    printed = run(project / "mine", command)
    assert "3 passed" in printed, printed
