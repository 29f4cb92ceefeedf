"""What a start loads: a module that a command does not use costs every run of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
