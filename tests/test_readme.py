"""The examples of the README run as they stand."""

import doctest
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONSOLE = re.findall(r"```console\n\$ mmprompt (.*?)\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def beside_fixtures(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "fixtures", tmp_path / "fixtures")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("beside_fixtures")
def test_python_examples_print_what_they_say():
    blocks = "\n".join(re.findall(r"```pycon\n(.*?)```", README, re.DOTALL))
    parsed = doctest.DocTestParser().get_doctest(blocks, {}, "README.md", "README.md", 0)
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(parsed)
    assert results.attempted >= 12
    assert results.failed == 0


@pytest.mark.usefixtures("beside_fixtures")
@pytest.mark.parametrize(("arguments", "printed"), CONSOLE, ids=lambda v: v[:40])
def test_console_examples_print_what_they_say(arguments, printed):
    run = subprocess.run(
        [sys.executable, "-m", "mmprompt", *shlex.split(arguments)],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    seen = (run.stdout + run.stderr).replace("\r\n", "\n")
    pattern = re.escape(printed.strip("\n")).replace(r"\.\.\.", "(?:.|\n)*")
    assert re.search(pattern, seen), seen
    assert "Traceback" not in seen


def test_the_task_shown_is_the_task_in_the_fixtures():
    assert re.search(r"```yaml\n(.*?)```", README, re.DOTALL).group(1) == (ROOT / "fixtures/tour/task.yaml").read_text()


def test_there_are_console_examples():
    assert len(CONSOLE) == 7


def test_no_link_of_the_readme_is_dead():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
