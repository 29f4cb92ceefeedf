"""``mmprompt plugins`` on runners that are absent, broken, slow, not registered, and sound."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mmprompt import TaskError
from mmprompt.plugins.catalog import state_of
from mmprompt.plugins.examples import write_example
from mmprompt.plugins.runners import RUNNERS, Runner, runner_named

PLUGINS = Path(sys.modules[write_example.__module__].__file__ or "").parent
NAMES = ["aisbench", "opencompass", "inspect-ai", "pytest", "lm-eval", "lmms-eval", "evalscope", "deepeval"]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Install a runner that is one module, with metadata beside it."""

    def install(code: str, *, version: str = "1.2", group: str = "", entry: str = "") -> Runner:
        site = tmp_path / "site"
        (site / "fake_runner-1.dist-info").mkdir(parents=True)
        (site / "fake_runner.py").write_text(code)
        (site / "fake_runner-1.dist-info" / "METADATA").write_text(f"Name: fake-runner\nVersion: {version}\n")
        if entry:
            (site / "fake_runner-1.dist-info" / "entry_points.txt").write_text(f"[{group}]\nmmprompt = {entry}\n")
        monkeypatch.syspath_prepend(site)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]))
        return Runner("fake", "fake-runner", "1.0", ("fake_runner",), group, "by class")

    return install


def test_an_absent_runner_is_one_line_with_the_command_that_installs_it(command: Any) -> None:
    absent = state_of(Runner("fake", "fake-runner-that-is-not", "1", ("fake_runner",), "", "by class"))
    assert (absent.version, absent.sound) == (None, True)
    lines = command("plugins").stdout.decode().splitlines()
    starts = [line for line in lines if line[0] != " "]
    assert [line.split()[0] for line in starts] == NAMES
    for line in starts:
        name = line.split()[0]
        if "not installed" in line:
            assert line.endswith(f"not installed: {runner_named(name).install}")


def test_each_page_installs_its_runner_as_the_hint_says() -> None:
    table = (PLUGINS / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w-]+)[^|]*\| `(pip install .*?)` \| \[.*?\]\((.*?)\) \|$", table, re.MULTILINE)
    assert [name.lower() for name, _, _ in rows] == NAMES
    for name, install, page in rows:
        assert install.replace("'.[", "'mmprompt[") == runner_named(name.lower()).install
        assert f"```sh\n{install}\n```" in (PLUGINS / page).read_text(encoding="utf-8")


def test_each_runner_has_an_example_with_its_command() -> None:
    assert [runner.name for runner in RUNNERS] == NAMES
    examples = PLUGINS / "examples"
    assert sorted(folder.name for folder in examples.iterdir()) == sorted(NAMES)
    assert all((examples / name / "README.md").is_file() for name in NAMES)


def test_a_sound_runner(fake: Any) -> None:
    state = state_of(fake("print('noise')\nimport sys; sys.stderr.write('more noise')"))
    assert state.sound
    assert (state.version, state.registered, state.fault) == ("1.2", "by class", "")
    assert "fake_runner" not in sys.modules


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        (
            "import a_module_that_is_not",
            "import fake_runner: ModuleNotFoundError: No module named 'a_module_that_is_not' (",
        ),
        ("raise SystemExit(3)", "import fake_runner: SystemExit: 3 ("),
        ("def (", "import fake_runner: SyntaxError: "),
        ("import os; os._exit(7)", "the import of fake_runner ended its process with code 7"),
        ("import os, sys; sys.stderr.write('no\\nCUDA\\n'); sys.stderr.flush(); os._exit(1)", "with code 1: CUDA"),
    ],
)
def test_a_runner_that_does_not_load_tells_its_real_error(fake: Any, code: str, fault: str) -> None:
    state = state_of(fake(code))
    assert fault in state.fault
    assert not state.sound


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")
def test_a_runner_that_crashes_does_not_take_us_along(fake: Any) -> None:
    state = state_of(fake("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    assert "ended its process with Killed" in state.fault


def test_a_runner_that_hangs_is_not_waited_for(fake: Any) -> None:
    assert state_of(fake("import time; time.sleep(60)"), timeout=0.5).fault == "its import took longer than 0.5 s"


def test_a_runner_that_does_not_find_us(fake: Any) -> None:
    runner = fake("", group="fake.plugins", entry="somebody.else")
    state = state_of(runner)
    assert (state.registered, state.sound) == ("", False)


def test_the_entry_point_is_that_of_the_metadata(fake: Any) -> None:
    runner = fake("", group="fake.plugins", entry="fake_runner")
    assert state_of(runner).registered == "by class (fake.plugins: mmprompt = fake_runner)"


def test_a_module_in_the_working_directory_is_not_taken_for_the_runner(
    tmp_path: Path, fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = fake("")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "fake_runner.py").write_text("raise RuntimeError")
    monkeypatch.chdir(tmp_path / "here")
    assert state_of(runner).fault == ""


def test_the_exit_code_tells_of_a_runner_that_is_broken(tmp_path: Path, process: Any) -> None:
    site = tmp_path / "site"
    (site / "opencompass-9.dist-info").mkdir(parents=True)
    (site / "opencompass-9.dist-info" / "METADATA").write_text("Name: opencompass\nVersion: 9\n")
    (site / "opencompass").mkdir()
    (site / "opencompass" / "__init__.py").write_text("import pyarrow_26_with_numpy_1")
    before = os.environ.get("PYTHONPATH", "")
    package = str(Path(sys.modules["mmprompt"].__file__ or "").parent.parent)
    done = process("plugins", env={"PYTHONPATH": os.pathsep.join([str(site), package, before])})
    text = done.stdout.decode()
    assert done.returncode == 1
    assert "opencompass  installed 9, tested with 0.5.4\n" in text
    assert (
        "loads: no: import opencompass.cli.main: ModuleNotFoundError: No module named 'pyarrow_26_with_numpy_1' ("
        in text
    )
    assert done.stderr == b""


def test_pytest_is_found_where_our_metadata_are_installed(command: Any) -> None:
    text = command("plugins").stdout.decode().partition("pytest       installed ")[2]
    assert text.startswith(importlib.metadata.version("pytest"))
    assert "loads: yes" in text
    if any(e.name == "mmprompt" for e in importlib.metadata.entry_points(group="pytest11")):
        assert "(pytest11: mmprompt = mmprompt.plugins.pytest_plugin)" in text
    else:
        assert "registered: no: " in text


def test_telling_loads_no_runner(command_environment: dict[str, str]) -> None:
    code = "import sys; from mmprompt.cli import main; main(['plugins']); print(*sys.modules, sep=chr(10))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=command_environment, capture_output=True, text=True, check=True
    )
    runners = {"inspect_ai", "opencompass", "ais_bench", "lm_eval", "lmms_eval", "evalscope", "deepeval"}
    assert not {"pytest", "_pytest", *runners} & set(done.stdout.split("\n"))


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_written_once(name: str, tmp_path: Path, command: Any) -> None:
    folder = tmp_path / "new" / "mine"
    done = command("plugins", "--init", name, folder)
    assert (done.returncode, done.stderr) == (0, b"")
    written = {str(path) for path in folder.iterdir()}
    assert set(done.stdout.decode().split("\n")) - {""} == written
    assert not any(path.endswith(".txt") for path in written)
    for path in folder.glob("*.py"):
        compile(path.read_text(encoding="utf-8"), str(path), "exec")
    for path in folder.glob("*.jsonl"):
        assert all(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    before = {path: path.read_bytes() for path in folder.iterdir()}
    again = command("plugins", "--init", name, folder)
    assert again.returncode == 2
    assert b" has a README.md already; name an empty folder" in again.stderr
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_an_example_that_would_overwrite_one_file_writes_none(tmp_path: Path) -> None:
    (tmp_path / "test_pictures.py").write_text("mine")
    with pytest.raises(TaskError, match=r" has a test_pictures\.py already; name an empty folder"):
        write_example("pytest", str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["test_pictures.py"]


def test_an_unknown_runner_is_named_with_the_nearest(tmp_path: Path, command: Any) -> None:
    done = command("plugins", "--init", "inspect", tmp_path / "a")
    assert done.returncode == 2
    assert done.stderr == b"mmprompt: MM602 unknown runner 'inspect'; did you mean 'inspect-ai'?\n"
    assert command("plugins", "--init", "pytest").returncode == 2
    assert runner_named("pytest").install == "pip install 'mmprompt[pytest]'"


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, command: Any) -> None:
    (tmp_path / "file").write_text("")
    done = command("plugins", "--init", "pytest", tmp_path / "file" / "a")
    assert done.returncode == 2
    assert b"Not a directory" in done.stderr
    assert b"Traceback" not in done.stderr
