"""The examples of inspect-ai's guide, run by the ``inspect`` command."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from readme_blocks import blocks_of_runner
from recording_server import recording_server
from runner_present import need

pytestmark = pytest.mark.runners
need("inspect-ai", "inspect_ai")
COMMAND, REFUSED, OWN_TASK = blocks_of_runner("mmprompt/plugins/inspect_ai/README.md", "inspect-ai")
SETTINGS, EVAL = COMMAND.text.splitlines()
ROWS = 25


@pytest.fixture
def folder(tmp_path: Path, tour: Path) -> Path:
    shutil.copytree(tour, tmp_path / "fixtures/tour")
    return tmp_path


def run(folder: Path, command: str) -> tuple[int, str, int]:
    """Run a command of the guide; return its exit code, what it printed, and how many requests the server got."""
    program, *words = shlex.split(command)
    assert program == "inspect"
    with recording_server() as server:
        settings = SETTINGS.replace("http://127.0.0.1:8000/v1", server.base_url).removeprefix("export ")
        quiet = {"XDG_DATA_HOME": str(folder), "NO_COLOR": "1", "HF_HUB_OFFLINE": "1", "COLUMNS": "1000"}
        done = subprocess.run(
            [str(Path(sys.executable).with_name("inspect")), *words, "--display", "plain"],
            cwd=folder,
            env={**os.environ, **quiet, **dict(word.split("=", 1) for word in settings.split())},
            capture_output=True,
            encoding="utf-8",
            timeout=600,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr, len(server.bodies)


def test_the_command_asks_each_row(folder: Path) -> None:
    code, printed, asked = run(folder, EVAL)
    assert (code, asked) == (0, ROWS), printed


def test_a_provider_that_would_lose_media_is_refused(folder: Path) -> None:
    command, _, shown = REFUSED.text.removeprefix("$ ").partition("\n")
    _, printed, asked = run(folder, command)
    assert asked == 0
    assert re.search(re.escape(shown.strip("\n")).replace(r"\.\.\.", "(?:.|\n)*"), printed), printed


def test_a_task_of_ones_own_asks_each_row(folder: Path) -> None:
    (folder / "eval.py").write_text(OWN_TASK.text, encoding="utf-8")
    code, printed, asked = run(folder, "inspect eval eval.py --model mmprompt/local/qwen")
    assert (code, asked) == (0, ROWS), printed
