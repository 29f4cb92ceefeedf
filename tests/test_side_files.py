"""Files that lie beside a dataset and hold what nobody expects: one line says what is wrong, and no traceback."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mmprompt
from mmprompt.cli import main

ROW = {"id": 1, "question": "Which colour?", "answer": "red"}
REPLY = {"row": 0, "id": 1, "prediction": "red", "answer": "red", "choices": ["red", "blue"]}
SHARD = {
    "part": 0,
    "start": 0,
    "end": None,
    "line": 1,
    "row": 0,
    "rows": 1,
    "first": 0,
    "chats": False,
    "file": "rows.jsonl",
}
SOUND: dict[str, Any] = {
    "manifest": {
        "version": 1, "task": None, "dataset": {"path": "rows.jsonl", "read": {"map_columns": {"question": "question"}}},
        "model": "m", "target": "vllm", "scorer": "exact", "index_base": None, "limit": 5, "headers": {"X-A": "B"},
    },
    "plan": {"version": 1, "mmprompt": mmprompt.__version__, "about": {"--emit": None}, "shards": [SHARD]},
    "baseline": {"findings": [{"code": "MM201", "file": "rows.jsonl", "id": 1, "row": 0, "column": None, "message": "x"}]},
}  # fmt: skip
ODD: list[Any] = [
    7, -1, 1.5, True, None, "", "a\0b", "a\ud800b", "x" * 5000, [], [7], {}, {"a": 1}, [[[[]]]], 10**400, "helpers.py", "../../x",
]  # fmt: skip
COMMANDS = {
    "manifest": [["view", "run.jsonl", "-n"], ["score", "run.jsonl"], ["compare", "run.jsonl", "run.jsonl"]],
    "plan": [["render", "rows.jsonl", "--engine", "local", "-o", "out.jsonl"]],
    "baseline": [["check", "rows.jsonl", "--baseline", "baseline.json"]],
}
FILES = {"manifest": "run.jsonl.manifest.json", "plan": "out.jsonl.shards/plan.json", "baseline": "baseline.json"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    (tmp_path / "run.jsonl").write_text(json.dumps(REPLY) + "\n")
    (tmp_path / "out.jsonl.shards").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container in a value with each of its keys."""
    for key, item in [
        *(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    ]:
        yield value, key
        yield from places(item)


def mutated(kind: str, draw: random.Random) -> str:
    """Return the text of a file with one place changed, or cut, or nested too deeply."""
    value = copy.deepcopy(SOUND[kind])
    holder, key = draw.choice([*places(value)])
    choice = draw.random()
    if choice < 0.15:
        del holder[key]
    else:
        holder[key] = draw.choice(ODD)
    text = json.dumps(value)
    if choice > 0.9:
        text = text[: draw.randrange(len(text))]
    if choice > 0.97:
        text = draw.choice(["[" * 100_000, "\ufeff" + text, "7", "null", '{"version":1,"version":2}', ""])
    return text


def tried(kind: str, text: str, folder: Path) -> None:
    path = folder / FILES[kind]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    for command in COMMANDS[kind]:
        assert main(command) in (0, 1, 2), (command, text)


@pytest.mark.parametrize("kind", ["manifest", "baseline"])
def test_a_mutated_file_is_read_or_refused_in_one_line(
    kind: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(11)
    for _ in range(80):
        tried(kind, mutated(kind, draw), folder)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("kind", COMMANDS)
def test_many_mutated_files_are_read_or_refused(kind: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draw = random.Random(12)
    for _ in range(60 if kind == "plan" else 2000):
        tried(kind, mutated(kind, draw), folder)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "plan",
    [
        "[]",
        '{"version":1,"mmprompt":"0.1.0","about":5,"shards":7}',
        '{"version":1,"mmprompt":"x","about":{},"shards":[5]}',
        "[" * 100_000,
    ],
)
def test_a_plan_that_is_none_is_refused(plan: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / FILES["plan"]).write_text(plan)
    assert main(COMMANDS["plan"][0]) == 2
    assert "plan.json" in capsys.readouterr().err


ODD_YAML = (
    "model: {model: !!timestamp x}", "model: !!timestamp x", "!!timestamp x: 5", "model: !!bool x", 'model: !!int ""',
    'model: !!int "-"', 'model: !!float ""', 'model: "\\UFFFFFFFF"',
)  # fmt: skip


@pytest.mark.parametrize("text", ODD_YAML)
def test_a_value_that_is_not_of_its_tag_is_malformed_yaml(
    text: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "task.yaml").write_text(f"dataset: rows.jsonl\n{text}\n")
    assert main(["render", "task.yaml"]) == 2
    assert "malformed YAML" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ['dataset: {path: rows.jsonl}\nmedia: {roots: ["\\ud800"]}', 'include: "\\ud800"\ndoc_to_text: x']
)
def test_half_a_surrogate_pair_in_a_path_is_refused(
    text: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "task.yaml").write_text(text)
    assert main(["render", "task.yaml"]) == 2
    assert "\\ud800" in capsys.readouterr().err
