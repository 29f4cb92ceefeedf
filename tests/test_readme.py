"""The examples of all README files run as they stand, in order, and print what they show."""

from __future__ import annotations

import doctest
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from command_line import run_here
from readme_blocks import PACKAGE, ROOT, Block, blocks, documents

import mmprompt

sys.path.insert(0, str(ROOT / "tests/plugins"))
from recording_server import recording_server

DOCUMENTS = documents()
README = DOCUMENTS["README.md"].read_text(encoding="utf-8")
SERVER = "http://127.0.0.1:8000/v1"
"""Where the examples have their model; a recording server stands in for it."""
FILES = {"yaml", "json", "jsonl", "csv", "toml", "ini"}
RUNNERS = {"aisbench", "opencompass", "inspect-ai", "pytest", "models", "lm-eval", "lmms-eval", "evalscope", "deepeval"}
INSTALLS = r"(python3 -m venv|\. \.venv/bin/activate|(\.venv/bin/)?(pip|pre-commit) install|(\.venv/bin/)?pytest -n)\b"
"""Commands that are not given again: the tests run in what they make."""
NOT_RUN = {
    ("mmprompt/scale/RAY.md", "$ mmprompt render task.yaml -o requests.jsonl --media file --engine ray"),
    ("mmprompt/scale/RAY.md", "$ mmprompt render s3://bucket/vqa.jsonl --media url -o s3://bucket/requests.jsonl"),
    ("mmprompt/scale/RAY.md", "import ray"),
    ("mmprompt/scale/README.md", "from pyspark import SparkContext"),
    ("mmprompt/scale/README.md", "from dask.distributed import Client"),
    ("mmprompt/scale/README.md", "import os"),  # Slurm sets its variable
    ("mmprompt/check/README.md", "[tool.mmprompt]"),
    ("mmprompt/cli/README.md", "$ mmprompt serve builtin:shapes"),
    ("mmprompt/plugins/opencompass/README.md", "from mmengine.config import read_base"),
    ("tests/benchmarks/README.md", "python tests/benchmarks/run.py"),
    ("tests/benchmarks/README.md", "python tests/benchmarks/grid.py"),
    ("tests/benchmarks/README.md", "python tests/benchmarks/run.py --peers path/to/python"),
    (".github/CONTRIBUTING.md", "pytest tests/templates/test_slots.py             # one file"),
}
"""Document and first line of each block that no test runs; each says why in its comment."""


class Reader:
    """Somebody who follows a document from top to bottom, in a folder with the fixtures."""

    def __init__(self, document: str, base_url: str) -> None:
        self.document = document
        self.base_url = base_url
        self.namespace: dict[str, Any] = {"__name__": "readme"}

    def follow(self, block: Block) -> None:
        block = block._replace(text=block.text.replace(SERVER, self.base_url))
        file = Path(block.value)
        if block.comment == "file" and file.exists():  # a fixture that is shown
            assert file.read_text(encoding="utf-8") == block.text, f"{self.document}:{block.line}"
        elif block.comment == "file":
            file.write_text(block.text, encoding="utf-8")
        elif not block.comment:
            getattr(self, block.language)(block)

    def pycon(self, block: Block) -> None:
        name = f"{self.document}:{block.line}"
        parsed = doctest.DocTestParser().get_doctest(block.text, self.namespace, name, self.document, block.line - 1)
        parsed.globs = self.namespace  # names of one block are known in the next
        seen = io.StringIO()
        results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(parsed, out=seen.write, clear_globs=False)
        assert results.attempted, f"{name} has no >>>"
        assert not results.failed, seen.getvalue()

    def python(self, block: Block) -> None:
        lines = "\n" * (block.line - 1) + block.text  # so that tracebacks name the document's own lines
        exec(compile(lines, self.document, "exec", dont_inherit=True), self.namespace)

    def console(self, block: Block) -> None:
        for command, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
            code, seen = self.run(command)
            pattern = re.escape(printed.strip("\n")).replace(r"\.\.\.", "(?:.|\n)*")
            assert re.search(pattern, seen), f"{self.document}:{block.line}: $ {command}\n{seen}"
            assert code in (0, 1, 2), seen

    def sh(self, block: Block) -> None:
        """Commands without output: they succeed."""
        for command in re.split(r" && |\n", block.text.strip()):
            if not re.match(INSTALLS, command):
                code, seen = self.run(command)
                assert code == 0, f"{self.document}:{block.line}: {command}\n{seen}"

    def run(self, command: str) -> tuple[int, str]:
        program, *arguments = shlex.split(command)
        if program == "head":
            _, count, file = arguments
            return 0, "".join(Path(file).read_text(encoding="utf-8").splitlines(keepends=True)[: int(count)])
        arguments = [str(ROOT / word) if word.startswith("tests/") else word for word in arguments]
        if os.path.basename(program) == "mmprompt":
            done = run_here(*arguments)
        else:
            assert os.path.basename(program) == "python", command
            environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
            words = [sys.executable, *arguments]
            done = subprocess.run(words, capture_output=True, env=environment, check=False, timeout=60)
        out, err = done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in err, err
        return done.returncode, (out + err).replace("\r\n", "\n")


@pytest.fixture
def beside_fixtures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Be in a folder with a copy of the fixtures that the document names, or of the tour."""
    params = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    text = DOCUMENTS[params["document"]].read_text(encoding="utf-8") if params else "fixtures/tour"
    for name in set(re.findall(r"\bfixtures/(\w+)", text)):
        if (ROOT / "fixtures" / name).is_dir():
            shutil.copytree(ROOT / "fixtures" / name, tmp_path / "fixtures" / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")


@pytest.mark.usefixtures("beside_fixtures")
@pytest.mark.parametrize("document", [name for name in DOCUMENTS if blocks(DOCUMENTS[name])])
def test_the_examples_run_and_print_what_they_show(document: str) -> None:
    with recording_server() as server, warnings.catch_warnings():
        reader = Reader(document, server.base_url)
        for block in blocks(DOCUMENTS[document]):
            reader.follow(block)


def test_every_block_is_run_by_somebody() -> None:
    left_out = set()
    for name, path in DOCUMENTS.items():
        for block in blocks(path):
            place = f"{name}:{block.line}"
            if block.comment == "not run":
                left_out.add((name, block.text.partition("\n")[0]))
            elif block.comment == "runner":
                assert block.value in RUNNERS, place
            elif block.comment == "file":
                later = [other.text for other in blocks(path) if other.line > block.line]
                assert any(block.value in text for text in later), f"{place}: nothing uses {block.value}"
            else:
                assert block.language in {"pycon", "python", "console", "sh"}, place
    assert left_out == NOT_RUN


@pytest.mark.parametrize("runner", sorted(RUNNERS))
def test_the_examples_of_each_runner_have_a_test(runner: str) -> None:
    used = [
        name for name, path in DOCUMENTS.items() for b in blocks(path) if (b.comment, b.value) == ("runner", runner)
    ]
    modules = (ROOT / "tests").rglob(f"test_{runner.replace('-', '_')}_*.py")
    text = "".join(module.read_text(encoding="utf-8") for module in modules)
    tested = re.findall(r'"(mmprompt/[^"]+\.md)"', text)
    table = (ROOT / "tests/plugins/tour_doors.py").read_text(encoding="utf-8")
    tested += re.findall(rf'"(mmprompt/[^"]+\.md)", "{runner}"', table)
    assert set(used) == set(tested)


def test_the_readme_is_short() -> None:
    assert len(README.encode()) <= 8192


def test_the_readme_begins_with_the_two_commands_that_install_and_run() -> None:
    first, second = [b.text for b in blocks(DOCUMENTS["README.md"]) if b.language == "sh"][:2]
    install = "python3 -m venv .venv && .venv/bin/pip install "
    assert first.startswith(install)
    assert first.endswith(".venv/bin/mmprompt run fixtures/shapes/task.yaml --model builtin:shapes\n")
    assert second.startswith(install)
    assert second.endswith(".venv/bin/pytest -n 2\n")


def test_the_readme_names_every_room_of_the_package() -> None:
    rooms = {
        p.name + ("/" if p.is_dir() else "")
        for p in PACKAGE.iterdir()
        if p.name[0] not in "_." and p.name != "py.typed"
    }
    table = README.partition("## What is where")[2]
    assert set(re.findall(r"^\| \[?`([a-z_./]+)`", table, re.MULTILINE)) == rooms


def test_every_extra_that_is_installed_is_one() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    known = set(re.findall(r"^([\w-]+) = \[", project.partition("[project.optional-dependencies]")[2], re.MULTILINE))
    for name, path in DOCUMENTS.items():
        for extras in re.findall(r"(?:mmprompt|'\.)\[([\w,-]+)\]'", path.read_text(encoding="utf-8")):
            assert set(extras.split(",")) <= known, f"{name}: {extras}"


def _anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_no_link_is_dead(document: str) -> None:
    text = re.sub(r"^```.*?^```$", "", DOCUMENTS[document].read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        name = os.path.normpath(os.path.join(os.path.dirname(document), target)) if target else document
        name = name.replace(os.sep, "/")
        path = PACKAGE.parent / name if name.startswith("mmprompt") else ROOT / name
        assert path.exists(), f"{document}: {link}"
        assert not anchor or anchor in _anchors(path), f"{document}: {link}"


def test_the_hooks_are_what_ci_checks() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    checks = (ROOT / ".ci/run").read_text(encoding="utf-8").replace('"', "")
    assert re.findall(r"entry: (.*)", hooks) == re.findall(r"^\$work/dev/bin/((?:ruff|mypy).*)", checks, re.MULTILINE)


def test_the_parts_of_the_benchmarks_are_those_that_can_be_measured() -> None:
    folder = ROOT / "tests/benchmarks"
    known = re.search(r"^PARTS = \((.*?)\)", (folder / "run.py").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert known
    table = re.findall(r"^\| `(\w+)` \|", (folder / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(table) == set(re.findall(r'"(\w+)"', known[1]))


def test_the_help_of_the_package_begins_with_an_example_that_runs(beside_fixtures: None) -> None:
    lines = (mmprompt.__doc__ or "").splitlines()
    [first] = [n for n, line in enumerate(lines) if line.lstrip().startswith(">>>")][:1]
    assert first <= 3
    example = doctest.DocTestParser().get_doctest(mmprompt.__doc__ or "", {}, "mmprompt", "mmprompt/__init__.py", 0)
    assert len(example.examples) >= 4
    seen = io.StringIO()
    assert not doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=seen.write).failed, seen.getvalue()
