"""The examples of local models run as they stand."""

from __future__ import annotations

import doctest
import io
import re
import shutil
from pathlib import Path

import pytest
from readme_blocks import ROOT, blocks_of_runner

pytest.importorskip("torch")

from mmprompt.cli import main  # after the skip

pytestmark = pytest.mark.models
COMMAND, PYTHON = blocks_of_runner("mmprompt/run/LOCAL.md", "models")


@pytest.fixture(autouse=True)
def beside_the_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "fixtures/llava", tmp_path / "fixtures/llava")
    monkeypatch.chdir(tmp_path)


def test_the_command_runs_and_prints_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    command, _, printed = COMMAND.text.partition("\n")
    program, *arguments = command.removeprefix("$ ").split()
    assert (program, main(arguments)) == ("mmprompt", 0)
    assert re.fullmatch(re.escape(printed).replace(r"\.\.\.", ".*"), capsys.readouterr().out)


def test_the_python_example_runs() -> None:
    example = doctest.DocTestParser().get_doctest(PYTHON.text, {}, "LOCAL.md", "LOCAL.md", PYTHON.line)
    seen = io.StringIO()
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=seen.write)
    assert result.attempted == 5, result
    assert not result.failed, seen.getvalue()
