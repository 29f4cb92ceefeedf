"""Options of an engine are refused where they would do nothing, and a wrong engine costs no shard that is done."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from command_line import run_here
from shard_cases import dataset

from mmprompt.cli import engine as engine_module
from mmprompt.errors import TaskError
from mmprompt.scale.local import run_local


@pytest.mark.parametrize("words", [("render", "-o", "out.jsonl"), ("check",), ("run", "--model", "builtin:shapes")])
def test_the_size_of_shards_without_an_engine_is_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    dataset(tmp_path)
    before = sorted(os.listdir(tmp_path))
    done = run_here(words[0], "data.jsonl", *words[1:], "--rows-per-shard", 5, cwd=tmp_path)
    said = "mmprompt: MM602 --rows-per-shard is for the shards of an engine; add --engine local, or leave it out\n"
    assert (done.returncode, done.stderr.decode()) == (2, said)
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("failing", ["engine", "name"])
def test_shards_that_are_done_stay_when_the_engine_fails(
    failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(work, specs, workers):  # type: ignore[no-untyped-def]  # an engine
        yield from run_local(work, list(specs)[:3], 1)
        raise TaskError("the cluster is gone")

    words = ("render", str(dataset(tmp_path)), "-o", str(tmp_path / "out.jsonl"), "--rows-per-shard", "20")
    with monkeypatch.context() as here:
        here.setattr(engine_module, "engine_named", lambda _: broken)
        stopped = run_here(*words, "--engine", "broken")
    assert stopped.returncode == 2
    if failing == "name":
        assert run_here(*words, "--engine", "locla").returncode == 2
    again = run_here(*words, "--engine", "local", "--workers", "1")
    assert b"going on: 3 of 8 shards were done before" in again.stderr
    assert again.returncode == 1
    run_here(*words[:2], "-o", tmp_path / "plain.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "plain.jsonl").read_bytes()


def test_a_run_goes_on_with_the_shards_it_began_with_whatever_their_number_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first_two(work, specs, workers):  # type: ignore[no-untyped-def]  # an engine
        yield from run_local(work, list(specs)[:2], 1)
        raise TaskError("stopped")

    words = ("render", str(dataset(tmp_path)), "-o", str(tmp_path / "out.jsonl"), "--engine", "local")
    with monkeypatch.context() as here:
        here.setattr(engine_module, "engine_named", lambda _: first_two)
        run_here(*words, "--rows-per-shard", "50", "--workers", "1")
    shards = json.loads((tmp_path / "out.jsonl.shards" / "plan.json").read_text())["shards"]
    assert len(shards) == 4
    again = run_here(*words, "--rows-per-shard", "7", "--workers", "2")
    assert b"going on: 2 of 4 shards were done before" in again.stderr
    run_here(*words[:2], "-o", tmp_path / "plain.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "plain.jsonl").read_bytes()
