"""Files that lie beside a dataset are data: no command and no public function runs the Python that they name."""

from __future__ import annotations

import ast
import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import mmprompt
from mmprompt import MMPromptError, TaskError
from mmprompt.cli import main
from mmprompt.tasks.load import load_file

PACKAGE = Path(mmprompt.__file__).parent
RAN = "it ran"
PYTHON = """
from pathlib import Path
Path(__file__).with_name("canary").write_text("it ran")
def score(*a, **k): Path(__file__).with_name("canary").write_text("it ran")
prompt = rows = Thing = score
dataset = "data.jsonl"
infer_cfg = {}
"""
REPLY = {"row": 0, "id": "q-1", "prediction": "red", "answer": "red", "choices": ["red", "blue"]}
ROW = {"id": "q-1", "question": "Which colour?", "answer": "red", "image": "helpers.py", "__class__": "helpers.py"}
LM_EVAL = """
task: colours
dataset_path: json
dataset_kwargs: {data_files: helpers.py}
include: helpers.py
doc_to_text: !function helpers.prompt
doc_to_target: !function helpers.score
process_results: !function helpers.score
"""
TASK = """
dataset: {path: data.jsonl}
infer_cfg:
  prompt_template: {type: helpers.Thing, template: "{question}"}
  retriever: {type: helpers.Thing}
  inferencer: {type: helpers.Thing}
eval_cfg: {scorer: helpers.score}
"""
CONFIGURATION = """
[tool.mmprompt]
baseline = "helpers.py"
select = ["helpers.py"]
config = "helpers.py"
extend = "helpers.py"
[tool.mmprompt.ignore]
"helpers.py" = ["ALL"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A stranger's folder: a dataset, and beside it all kinds of files, each of which names a Python file."""
    shards = {"path": "helpers.py", "task": "helpers.py", "part": 0, "rows": 1, "first": 0}
    about = {"version": 1, "mmprompt": mmprompt.__version__, "about": {"task": "helpers.py"}, "shards": [shards]}
    state = {"version": 1, "mmprompt": mmprompt.__version__, "task": "helpers.py", "path": "helpers.py", "rows": 1}
    texts = {
        "helpers.py": PYTHON,
        "data.jsonl": json.dumps(ROW) + "\n",
        "run.jsonl": json.dumps(REPLY) + "\n",
        "other.jsonl": json.dumps(REPLY) + "\n",
        "task.yaml": TASK,
        "rows.yaml": "dataset: {path: helpers.py, train: helpers.py, join: ['helpers.py:id']}\n",
        "lm_eval.yaml": LM_EVAL,
        "include.yaml": "include: helpers.py\ntask: colours\n",
        "baseline.json": json.dumps([{"file": "helpers.py", "code": "MM201", "task": "helpers.py"}]),
        "pyproject.toml": CONFIGURATION,
        "data.jsonl.state": json.dumps(state),
        "task.yaml.state": json.dumps(state),
        "mmprompt.toml": CONFIGURATION,
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    for name in ("out.jsonl.shards", "run.jsonl.shards", "data.jsonl.shards"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "plan.json").write_text(json.dumps(about))
    manifest = {"version": 1, "task": "helpers.py", "dataset": {"path": "helpers.py", "read": {"path": ["helpers.py"]}}}
    for name in ("data.jsonl", "run.jsonl", "other.jsonl", "out.jsonl", "task.yaml"):
        scorer = {"scorer": "helpers.score"} if name in ("other.jsonl", "data.jsonl") else {}
        (tmp_path / f"{name}.manifest.json").write_text(json.dumps({**manifest, **scorer}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("helpers", None)
    assert not (tmp_path / "canary").exists(), RAN


DATA = ("data.jsonl", "run.jsonl", "task.yaml", "rows.yaml", "lm_eval.yaml", "include.yaml")
COMMANDS: dict[str, list[list[str]]] = {
    "render": [[], ["--engine", "local", "-o", "out.jsonl"], ["-o", "out.jsonl"]],
    "run": [
        ["--model", "builtin:shapes", "-o", "run.jsonl"],
        ["--model", "builtin:shapes", "-o", "data.jsonl"],
        ["--model", "builtin:shapes", "-o", "out.jsonl", "--engine", "local"],
    ],
    "check": [[], ["--baseline", "baseline.json"], ["--resume"], ["--engine", "local", "-o", "out.jsonl"]],
    "stats": [[]],
    "score": [[]],
    "compare": [["other.jsonl"]],
    "init": [["-o", "new.yaml"]],
    "convert": [["new.csv", "--to", "csv"]],
    "view": [["-n"], ["--html", "page.html"], ["other.jsonl", "--html", "page.html"], ["--journal", "other.jsonl"]],
    "serve": [[]],
    "plugins": [[]],
}
FUNCTIONS: dict[str, Callable[[str], object]] = {
    "load_task": lambda name: list(mmprompt.load_task(name).requests(on_error=lambda _: None)),
    "dataset_task": lambda name: list(mmprompt.dataset_task(name).requests(on_error=lambda _: None)),
    "render_file": lambda name: mmprompt.render_file(name, "out.jsonl"),
    "check_dataset": lambda name: list(mmprompt.check_dataset(name)),
    "convert_dataset": lambda name: mmprompt.convert_dataset(name, "new.csv", to="csv"),
    "run_task": lambda name: mmprompt.run_task(name, "builtin:shapes", "out.jsonl"),
    "view_html": lambda name: mmprompt.view_html(name, "page.html"),
    "view_html of two": lambda name: mmprompt.view_html(name, "page.html", "other.jsonl"),
    "view_html with journal": lambda name: mmprompt.view_html(name, "page.html", journal="run.jsonl"),
    "score_journal": mmprompt.score_journal,
    "compare_journals": lambda name: mmprompt.compare_journals(name, "other.jsonl"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_runs_python_that_a_file_names(command: str, folder: Path) -> None:
    for name in DATA if command not in ("plugins", "serve") else ("run.jsonl",):
        for options in COMMANDS[command]:
            given = [] if command == "plugins" else [name]
            with contextlib.suppress(SystemExit):
                assert main([command, *given, *options]) != 3, (name, options)
            assert not (folder / "canary").exists(), (name, options)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_public_function_runs_python_that_a_file_names(function: str, folder: Path) -> None:
    for name in DATA:
        with contextlib.suppress(MMPromptError):
            FUNCTIONS[function](name)
        assert not (folder / "canary").exists(), name


def test_every_command_is_walked() -> None:
    runners = {"evalscope", "lm_eval", "runners"}  # they start the runner's own command line
    named = {path.stem for path in (PACKAGE / "cli").glob("*.py") if "\ndef add_parser(" in path.read_text()}
    assert named - runners == set(COMMANDS)


@pytest.mark.parametrize("named", ["helpers.py", "./helpers.py", "HELPERS.PY", "{folder}/helpers.py"])
def test_a_python_task_in_a_manifest_is_an_error_with_the_command_to_type(named: str, folder: Path) -> None:
    if not (folder / named.format(folder=folder)).exists():
        (folder / named).write_text(PYTHON)
    (folder / "run.jsonl.manifest.json").write_text(json.dumps({"version": 1, "task": named.format(folder=folder)}))
    with pytest.raises(TaskError, match=r"type: mmprompt view \S+\.(py|PY) --journal run\.jsonl"):
        mmprompt.view_html("run.jsonl", "page.html")


def test_a_server_of_a_page_runs_no_python_that_a_manifest_names(folder: Path) -> None:
    command = [sys.executable, "-m", "mmprompt", "view", "run.jsonl", "--serve"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=folder, check=False)
    assert found.returncode == 2
    assert "no manifest runs Python" in found.stderr
    assert "Traceback" not in found.stderr


def test_a_path_that_nobody_typed_is_not_executed(folder: Path) -> None:
    with pytest.raises(TaskError, match="is Python, and another file names it"):
        load_file(str(folder / "helpers.py"))


def test_the_path_that_the_caller_types_is_executed(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text(PYTHON)
    (tmp_path / "data.jsonl").write_text(json.dumps({"id": "q-1", "question": "Which colour?"}) + "\n")
    assert main(["render", str(tmp_path / "helpers.py"), "-o", str(tmp_path / "out.jsonl")]) in (0, 1, 2)
    assert (tmp_path / "canary").read_text() == RAN


def test_only_doors_of_the_caller_say_that_a_path_was_typed() -> None:
    """A path that stands in a file never becomes a ``TypedPath``: these are all the places that make one."""
    callers: dict[str, set[str]] = {"TypedPath": set(), "load_task": set()}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in callers:
                callers[node.func.id].add(path.relative_to(PACKAGE).as_posix())
    assert callers["TypedPath"] == {"tasks/load.py", "cli/task_options.py", "plugins/bridge/requests.py"}
    public = {"render/file.py", "run/task_run.py", "check/check.py", "viewer/exhibit.py", "testing.py"}
    with_mappings = {"plugins/bridge/runner_builder.py", "plugins/bridge/table_rows.py"}
    assert callers["load_task"] == public | with_mappings
