"""Options of an engine are refused where they would do nothing, and a wrong engine costs no shard that is done."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from command_line import run_here
from shard_cases import dataset

from mmprompt.cli import engine
from mmprompt.errors import TaskError
from mmprompt.scale import ray_engine
from mmprompt.scale.local import run_local


@pytest.mark.parametrize("words", [("render", "-o", "out.jsonl"), ("check",), ("run", "--model", "builtin:shapes")])
def test_the_size_of_shards_without_an_engine_is_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    dataset(tmp_path)
    before = sorted(os.listdir(tmp_path))
    done = run_here(words[0], "data.jsonl", *words[1:], "--rows-per-shard", 5, cwd=tmp_path)
    said = "mmprompt: MM602 --rows-per-shard is for the shards of an engine; add --engine local, or leave it out\n"
    assert (done.returncode, done.stderr.decode()) == (2, said)
    assert sorted(os.listdir(tmp_path)) == before


def test_a_cluster_of_our_own_has_a_token_of_its_own_and_no_other_way_in() -> None:
    first, second = (ray_engine._settings(address) for address in ("", "local"))
    for settings in (first, second):
        assert (settings["RAY_AUTH_MODE"], settings["RAY_ENABLE_K8S_TOKEN_AUTH"]) == ("token", "0")
    assert len({first["RAY_AUTH_TOKEN"], second["RAY_AUTH_TOKEN"]}) == 2
    assert "RAY_AUTH_TOKEN" not in ray_engine._settings("10.0.0.5:6379")  # that of the cluster counts


def stopped(words: tuple[str, ...], shards: int) -> None:
    """Run the command with an engine that does so many shards, and then fails."""

    def failing(work, specs, workers):  # type: ignore[no-untyped-def]  # an engine
        yield from run_local(work, list(specs)[:shards], 1)
        raise TaskError("the cluster is gone")

    with pytest.MonkeyPatch.context() as here:
        here.setattr(engine, "engine_named", lambda _: failing)
        assert run_here(*words).returncode == 2


def assert_goes_on(words: tuple[str, ...], folder: Path, done: str) -> None:
    """Run the command to its end, and compare its output with that of a plain run."""
    again = run_here(*words)
    assert f"going on: {done} shards were done before" in again.stderr.decode()
    assert again.returncode == run_here("render", folder / "data.jsonl", "-o", folder / "plain.jsonl").returncode == 1
    assert (folder / "out.jsonl").read_bytes() == (folder / "plain.jsonl").read_bytes()


@pytest.mark.parametrize("name", [None, "locla"])
def test_shards_that_are_done_stay_when_the_engine_fails(name: str | None, tmp_path: Path) -> None:
    words = ("render", str(dataset(tmp_path)), "-o", str(tmp_path / "out.jsonl"), "--rows-per-shard", "20", "--engine")
    stopped((*words, "local"), 3)
    if name is not None:
        assert run_here(*words, name).returncode == 2
    assert_goes_on((*words, "local", "--workers", "1"), tmp_path, "3 of 8")


def test_a_run_goes_on_with_the_shards_it_began_with_whatever_their_size_is_now(tmp_path: Path) -> None:
    words = ("render", str(dataset(tmp_path)), "-o", str(tmp_path / "out.jsonl"), "--engine", "local")
    stopped((*words, "--rows-per-shard", "50", "--workers", "1"), 2)
    assert_goes_on((*words, "--rows-per-shard", "7", "--workers", "2"), tmp_path, "2 of 4")


@pytest.mark.parametrize("version", ["2.51.1", "1.13.0", "2.9"])
def test_a_ray_that_knows_no_tokens_is_refused_in_one_line(version: str, tmp_path: Path) -> None:
    about = tmp_path / "site" / f"ray-{version}.dist-info"
    (tmp_path / "site" / "ray").mkdir(parents=True)
    (tmp_path / "site" / "ray" / "__init__.py").write_text("raise SystemExit('Ray is loaded')")
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: ray\nVersion: {version}\n")
    dataset(tmp_path)
    with pytest.MonkeyPatch.context() as here:
        here.syspath_prepend(str(tmp_path / "site"))
        done = run_here("render", "data.jsonl", "-o", "out.jsonl", "--engine", "ray", cwd=tmp_path)
    said = f"mmprompt: MM903 --engine ray needs Ray 2.52 or newer, and this is {version}; pip install 'mmprompt[ray]'\n"
    assert (done.returncode, done.stderr.decode()) == (2, said)
