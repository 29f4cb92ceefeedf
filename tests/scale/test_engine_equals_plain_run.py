"""With an engine a command writes, tells and returns what it does without one, whatever the cuts."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import run_here

from mmprompt.cli import engine, engine_check

ROOT = Path(__file__).resolve().parents[2]
TASKS = "tests/render/golden_tasks"
RENDERED = [
    line
    for line in json.loads((ROOT / "fixtures/golden_outputs.json").read_text(encoding="utf-8"))
    if "--workers" not in line
    and ("--target" not in line or "openai" in line)
    and ("--emit" not in line or "batch" not in line or "openai" in line)
]
CHECKED = [
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "fixtures/check").iterdir() if path.suffix),
    "fixtures/broken/broken.jsonl", "fixtures/tour/task.yaml", "fixtures/tour/tour.jsonl", "fixtures/tour/tour.csv",
    "fixtures/check/labels.jsonl fixtures/check/texts.jsonl",
    "fixtures/tour/tour.jsonl --select ALL --limit 3",
    "fixtures/tour/tour.jsonl --against fixtures/tour/tour_chat.jsonl --output-format json",
    f"{TASKS}/examples_with_media.yaml --media-root fixtures/tour --select ALL --output-format jsonl",
]  # fmt: skip

DECODED_APART = {"fixtures/broken/broken.jsonl", "fixtures/tour/task.yaml", "fixtures/check/pictures.jsonl"}
"""What is decoded in child processes, as by default. Each shard begins one, so the rest is decoded in this process."""


def in_any_order(work: Callable[[Any], Any], specs: Iterable[Any], workers: int) -> Iterator[Any]:
    """Do the shards in this process, each with objects of its own, and not in their order."""
    del workers
    every = list(specs)
    random.Random(17).shuffle(every)  # the same order each time
    for spec in every:
        yield json.loads(json.dumps(work(pickle.loads(pickle.dumps(spec)))))  # our own


@pytest.fixture
def shuffled(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (engine, engine_check):
        monkeypatch.setattr(module, "engine_named", {"shuffled": in_any_order}.__getitem__)


def outcome(folder: Path, words: list[str], *options: str) -> tuple[Any, ...]:
    """Run a command, and return all that it gave; files are named alike in both runs."""
    folder.mkdir()
    out, errors = folder / "out.jsonl", folder / "errors.jsonl"
    files = ["-o", str(out), "--errors", str(errors)] if words[0] == "render" else []
    done = run_here(*words, *files, *options, cwd=ROOT)
    left = sorted(path.name for path in folder.iterdir())
    told = done.stderr.decode().replace(str(folder), "FOLDER")
    written = [path.read_bytes() if path.exists() else None for path in (out, errors)]
    return done.returncode, done.stdout, told, *written, left


@pytest.mark.usefixtures("shuffled")
@pytest.mark.parametrize(
    "line", [line if n % 6 == 0 else pytest.param(line, marks=pytest.mark.slow) for n, line in enumerate(RENDERED)]
)
def test_rendering_in_shards_equals_a_plain_run(line: str, tmp_path: Path) -> None:
    words = ["render", *line.split()]
    plain = outcome(tmp_path / "plain", words)
    assert outcome(tmp_path / "shards", words, "--engine", "shuffled", "--rows-per-shard", "2") == plain


@pytest.mark.usefixtures("shuffled")
@pytest.mark.parametrize(
    "line",
    [
        line if line in DECODED_APART or n % 3 == 0 else pytest.param(line, marks=pytest.mark.slow)
        for n, line in enumerate(CHECKED)
    ],
)
def test_checking_in_shards_equals_a_plain_run(line: str, tmp_path: Path) -> None:
    words = ["check", *line.split(), *([] if line in DECODED_APART else ["--policy", "trusted"])]
    plain = outcome(tmp_path / "plain", words)
    assert outcome(tmp_path / "shards", words, "--engine", "shuffled", "--rows-per-shard", "5") == plain
