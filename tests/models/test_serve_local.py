"""``mmprompt serve FOLDER``: a runner that asks the server gets what a run in one process gets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mmprompt import run_task

pytest.importorskip("torch")
import drawn  # after the skip

pytestmark = pytest.mark.models


def predictions(journal: Path) -> dict[int, str]:
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    return {line["row"]: line.get("prediction", line.get("error")) for line in lines}


def test_a_served_model_replies_as_in_one_process(command_environment: dict[str, str], tmp_path: Path) -> None:
    dataset = drawn.FIXTURE / "examples.jsonl"
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    run_task(dataset, str(drawn.FIXTURE), here, options=drawn.SHORT)
    words = [sys.executable, "-m", "mmprompt", "serve", str(drawn.FIXTURE)]
    with subprocess.Popen(words, env=command_environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            run_task(dataset, str(drawn.FIXTURE), there, base_url=url, options=drawn.SHORT)
        finally:
            server.terminate()
    assert server.returncode == 0
    assert predictions(there) == predictions(here)
    answers = [json.loads(line)["answer"] for line in dataset.read_text(encoding="utf-8").splitlines()]
    assert predictions(here) == dict(enumerate(answers))
