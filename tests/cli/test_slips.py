"""Wrong names and values on the command line: one line says what is wrong, where, and what to type."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from command_line import run_here

RUN = ("run", "vqa.jsonl", "--model", "m")
SLIPS = [
    (("render", "vqa.json"), "no such file: 'vqa.json'; did you mean 'vqa.jsonl'?"),
    (("check", "data/vqa2.jsonl"), "no such file: 'data/vqa2.jsonl'; did you mean 'data/vqa1.jsonl'?"),
    (("render", "dta/vqa1.jsonl"), "no such file: 'dta/vqa1.jsonl'; check the path: there is no folder 'dta'"),
    (("stats", "other.jsonl"), "no such file: 'other.jsonl'; check the path"),
    (("render", "https://example.com/vqa.jsonl"), "no such file: 'https://example.com/vqa.jsonl'; download it, and"),
    (("render", "tasks.yaml"), "no such file: 'tasks.yaml'; did you mean 'task.yaml'?"),
    (("render", "task.yaml"), "task.yaml: MM000 no such file: 'gone.jsonl'; check the path"),
    (("render", "task.yaml", "--dataset", "none.jsonl"), "mmprompt: MM000 no such file: 'none.jsonl'; check the path"),
    (("score", "none.jsonl"), "no such file: none.jsonl; check the path"),
    (("compare", "none.jsonl", "vqa.jsonl"), "no such file: none.jsonl; check the path"),
    (("run", "vqa.jsonl", "--collect", "none.jsonl"), "no such file: none.jsonl; check the path"),
    (("init", "vqa.jsonl", "-o", "no/task.yaml"), "the folder of the output 'no/task.yaml' does not exist; create it"),
    (("init", "vqa.jsonl", "-o", "data"), "the output 'data' is a folder; name a file in it"),
    (("init", "task.yaml"), "'task.yaml' is a task file already; render it: mmprompt render task.yaml, or"),
    (("init", "-"), "a task file cannot name standard input; save it to a file, and give its name"),
    ((*RUN, "--temperature", "hot"), "argument --temperature: 'hot' is not a number"),
    ((*RUN, "--top-p", "2"), "argument --top-p: '2' is not a number from 0 to 1"),
    ((*RUN, "--seed", "1.5"), "argument --seed: '1.5' is not a whole number"),
    ((*RUN, "--fail-under", "80"), "argument --fail-under: '80' is not a number from 0 to 1, such as 0.8"),
    (("score", "vqa.jsonl", "--index-base", "one"), "argument --index-base: 'one' is not a whole number"),
    (("render", "vqa.jsonl", "--fps", "0"), "argument --fps: '0' is not a number above 0"),
    (
        ("view", "vqa.jsonl", "--serve", "--port", "99999"),
        "argument --port: '99999' is not a port; give a number to 65535",
    ),
    (("serve", "builtin:shapes", "--port", "x"), "argument --port: 'x' is not a port; give a number to 65535"),
    (("run", "vqa.jsonl", "--model", "./qwen"), "there is no folder './qwen'; give the folder of a local model, or"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("MMPROMPT_BASE_URL", raising=False)
    (tmp_path / "data").mkdir()
    for name in ("vqa.jsonl", "data/vqa1.jsonl"):
        (tmp_path / name).write_text(json.dumps({"id": 1, "question": "What?"}) + "\n", encoding="utf-8")
    (tmp_path / "task.yaml").write_text("dataset: {path: gone.jsonl}\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("words", "said"), SLIPS, ids=[" ".join(words) for words, _ in SLIPS])
def test_a_slip_is_told_in_one_line_with_what_to_type(folder: Path, words: tuple[str, ...], said: str) -> None:
    before = sorted(os.listdir(folder))
    done = run_here(*words, cwd=folder)
    told = done.stderr.decode().splitlines()
    assert (done.returncode, done.stdout) == (2, b"")
    assert len(told) == 1
    assert said in told[0]
    assert sorted(os.listdir(folder)) == before
