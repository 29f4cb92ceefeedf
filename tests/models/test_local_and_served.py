"""The same model in this process and behind ``transformers serve``: the same predictions, row for row."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
import drawn  # after the skip

from mmprompt.cli import main
from mmprompt.run.local_model import LocalModel
from mmprompt.run.server import ModelServer

pytestmark = pytest.mark.models
_START = 180.0
"""Seconds that the server may take until it answers."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of ``transformers serve`` with the LLaVA."""
    for name in ("fastapi", "uvicorn", "accelerate"):
        if os.environ.get("CI") != "true":
            pytest.importorskip(name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = "from transformers.cli.transformers import main; main()"
    options = ["serve", str(drawn.FIXTURE), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    log = tmp_path_factory.mktemp("serve") / "log"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", code, *options], stdout=output, stderr=output, env=environment
        )
    try:
        end = time.monotonic() + _START
        while not answers(port):
            assert process.poll() is None, log.read_text("utf-8")
            assert time.monotonic() < end, log.read_text("utf-8")
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait(30)


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def lines(journal: Path) -> list[dict[str, Any]]:
    made = [json.loads(line) for line in journal.read_text("utf-8").splitlines()]
    return sorted(made, key=lambda line: (line["row"], line["turn"] or 0, line["label"] or ""))


def asked(task: Path, name: str, *options: str) -> list[dict[str, Any]]:
    """The lines of the journal of a run."""
    journal = task.parent / f"{name}.jsonl"
    shared = ["--model", str(drawn.FIXTURE), "--max-tokens", "8", "--temperature", "0", "-o", str(journal)]
    assert main(["run", str(task), *shared, *options]) == 0
    return lines(journal)


CASES = {
    "single": (drawn.single, 24, None),
    "odd": (drawn.odd, 24, None),
    "two": (drawn.pairs, 12, None),
    "every": (drawn.dialogues, 8, "every"),
    "every_with_gt": (drawn.dialogues, 8, "every_with_gt"),
    "last": (drawn.dialogues, 8, "last"),
}


def expected(case: str, rows: list[dict[str, Any]]) -> list[str]:
    """What a model that sees, and reads the conversation, says."""
    if case in ("single", "two", "odd"):
        return [row["answer"] for row in rows]
    if case == "every":
        return [row["true"] for row in rows for _ in range(2)]
    if case == "last":
        return [row["answer"][1] for row in rows]
    return [word for row in rows for word in (row["true"], row["answer"][0])]


@pytest.mark.parametrize("case", CASES)
def test_the_predictions_are_the_same(server: str, tmp_path: Path, case: str) -> None:
    make, count, mode = CASES[case]
    rows = make(tmp_path, count)
    task = drawn.written(tmp_path, rows, None if mode is None else drawn.dialogue(mode))
    here = asked(task, "here")
    there = asked(task, "there", "--base-url", server)
    keys = ("row", "id", "turn", "prediction", "answer", "finish_reason", "usage")
    assert [[line[key] for key in keys] for line in here] == [[line[key] for key in keys] for line in there]
    said = [line["prediction"] for line in here]
    right = expected(case, rows)
    if case == "odd":  # of a grey picture the colour, and of a clear one the pixels, cannot be known
        assert [said[n] for n in range(24) if n % 6 < 4] == [right[n] for n in range(24) if n % 6 < 4]
    else:
        assert said == right


@pytest.mark.parametrize("case", ["two", "every"])
def test_our_own_server_gives_the_same_predictions(tmp_path: Path, case: str) -> None:
    make, count, mode = CASES[case]
    rows = make(tmp_path, count)
    task = drawn.written(tmp_path, rows, None if mode is None else drawn.dialogue(mode))
    with closing(LocalModel(drawn.FIXTURE)) as model, ModelServer(model) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        try:
            there = asked(task, "there", "--base-url", served.url)
        finally:
            served.shutdown()
            thread.join(30)
    assert [line["prediction"] for line in there] == expected(case, rows)


def test_this_server_gives_no_log_probabilities_and_is_refused(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = drawn.written(tmp_path, drawn.single(tmp_path, 3), drawn.labels("", ["red", "left"], image=True))
    options = ["--model", str(drawn.FIXTURE), "--base-url", server, "-o", str(tmp_path / "out.jsonl")]
    assert main(["run", str(task), *options]) == 2
    assert f"{server} gives no log-probabilities of prompts" in capsys.readouterr().err
