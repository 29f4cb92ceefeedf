"""What a start loads: a module that a command does not use costs every run of it."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest

ROW = (
    '{"id": "a", "type": "image", "path": "https://example.com/a.jpg", "question": "What is it?", "answer": "A cat"}\n'
)

UNUSED = {
    "importlib.metadata", "importlib.resources", "logging", "traceback", "pathlib", "subprocess", "socket", "pickle",
    "tempfile", "random", "hashlib", "secrets", "concurrent.futures", "sqlite3", "tarfile", "zipfile", "gzip",
    "fractions", "difflib", "signal", "numpy", "PIL", "av", "soundfile", "requests", "urllib3", "transformers", "torch",
    "yaml", "jinja2", "tqdm", "pyarrow", "datasets",
    "urllib.parse", "mmprompt.meta_template.meta_template", "mmprompt.templates.prompt_list", "mmprompt.icl.assembly", "mmprompt.icl.retrievers", "mmprompt.icl.types", "mmprompt.templates.text",
    "mmprompt.templates.multiturn", "mmprompt.templates.raw", "mmprompt.tasks.upstream", "mmprompt.tasks.yaml_text",
    "mmprompt.media.sandbox.process", "mmprompt.media.engine", "mmprompt.media.fetch", "mmprompt.media.cache.cache",
    "mmprompt.targets.fitting", "mmprompt.datasets.likely_encoding", "mmprompt.datasets.readers.webdataset",
    "mmprompt.viewer", "mmprompt.check", "mmprompt.run", "mmprompt.prompters", "mmprompt.plugins", "mmprompt.cli.run",
    "mmprompt.cli.check", "mmprompt.cli.plugins", "mmprompt.cli.view",
}  # fmt: skip
"""What rendering a row with a URL does not need: examples, isolation, the network, other formats, other commands."""


BELOW_UNUSED = tuple([f"{name}." for name in UNUSED])


def loaded(code: str, environment: dict[str, str], *words: object) -> set[str]:
    """Return the modules that an interpreter has loaded after ``code``, beyond those of a bare one."""
    told = "\nimport sys; print(*sorted(sys.modules), file=sys.stderr)"
    found = []
    for each in ("", code):
        # -S: what lies in the environment's site-packages may load modules of its own at every start
        path = f"import sys; sys.path[:] = {sys.path!r}\n"
        command = [sys.executable, "-S", "-c", path + each + told, *map(str, words)]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
        found.append(set(ran.stderr.splitlines()[-1].split()))
    return found[1] - found[0]


def test_the_import_loads_only_the_package(command_environment: dict[str, str]) -> None:
    assert loaded("import mmprompt", command_environment) <= {"__future__", "mmprompt"}


def test_rendering_a_row_loads_nothing_that_it_does_not_use(
    tmp_path: Path, command_environment: dict[str, str]
) -> None:
    source, target = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    source.write_text(ROW)
    code = "import sys\nfrom mmprompt.cli import main\nassert main(sys.argv[1:]) == 0"
    found = loaded(code, command_environment, "render", source, "-o", target)
    assert b"https://example.com/a.jpg" in target.read_bytes()
    assert "mmprompt.render.builder" in found
    found -= loaded("import orjson", command_environment)  # which loads subprocess on Python 3.10
    assert {name for name in found if name in UNUSED or name.startswith(BELOW_UNUSED)} == set()


def test_only_a_process_of_our_own_collects_garbage_rarely(tmp_path: Path, command_environment: dict[str, str]) -> None:
    source = tmp_path / "rows.jsonl"
    source.write_text(ROW)
    code = """
import atexit, gc, sys
from mmprompt.cli import main
before = gc.get_threshold()
assert main(*eval(sys.argv.pop())) == 0
print(gc.get_threshold() > before, gc.get_freeze_count() > 0, file=sys.stderr)
atexit._run_exitfuncs()
print(gc.get_freeze_count() > 0, file=sys.stderr)
"""
    words = ["render", str(source)]
    for given, found in (((), "True False True"), ((words,), "False False False")):
        command = [sys.executable, "-c", code, *words, repr(given)]
        ran = subprocess.run(command, env=command_environment, capture_output=True, text=True, timeout=60, check=True)
        assert ran.stderr.split()[-3:] == found.split()


@pytest.fixture
def old_orjson(tmp_path: Path, command_environment: dict[str, str]) -> dict[str, str]:
    """An environment with an orjson that has no ``Fragment``, as those before 3.9."""
    (tmp_path / "orjson-3.8.14.dist-info").mkdir()
    metadata = "Metadata-Version: 2.1\nName: orjson\nVersion: 3.8.14\n"
    (tmp_path / "orjson-3.8.14.dist-info/METADATA").write_text(metadata)
    code = "from json import JSONDecodeError, dumps, loads\nOPT_PASSTHROUGH_DATACLASS = OPT_PASSTHROUGH_DATETIME = 1\n"
    (tmp_path / "orjson.py").write_text(f"{code}OPT_APPEND_NEWLINE = 2\n")
    return {"PYTHONPATH": os.pathsep.join([str(tmp_path), command_environment["PYTHONPATH"]])}


@pytest.mark.parametrize("words", [("render",), ("check",), ("view", "-n")])
def test_a_dependency_older_than_asked_for_is_told_in_one_line(
    tmp_path: Path, process: Any, old_orjson: dict[str, str], words: tuple[str, ...]
) -> None:
    (tmp_path / "rows.jsonl").write_text(ROW)
    done = process(*words, tmp_path / "rows.jsonl", env=old_orjson)
    wanted = next(line for line in requires("mmprompt") or [] if line.startswith("orjson"))
    told = f"mmprompt: orjson 3.8.14 is older than mmprompt needs; pip install '{wanted}'\n"
    assert (done.returncode, done.stdout.decode(), done.stderr.decode()) == (2, "", told)


def test_what_does_not_use_the_old_dependency_goes_on(process: Any, old_orjson: dict[str, str]) -> None:
    assert process("--help", env=old_orjson).returncode == 0


def test_a_fault_of_a_dependency_that_is_new_enough_shows_its_traceback(
    tmp_path: Path, process: Any, old_orjson: dict[str, str]
) -> None:
    (tmp_path / "rows.jsonl").write_text(ROW)
    (tmp_path / "orjson.py").write_text("raise ModuleNotFoundError(\"No module named 'orjson'\", name='orjson')\n")
    (tmp_path / "orjson-3.8.14.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: orjson\nVersion: 99\n")
    done = process("render", tmp_path / "rows.jsonl", env=old_orjson)
    assert done.returncode == 3  # an orjson that is there and new enough: the fault is another, and is shown
    assert b"internal error" in done.stderr
