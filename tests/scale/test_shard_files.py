"""``render --engine … --shards`` leaves each shard as a file, and a manifest names the files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run_here

ROOT = Path(__file__).parents[2]
TOUR = str(ROOT / "fixtures" / "tour" / "tour.jsonl")
BROKEN = str(ROOT / "fixtures" / "broken" / "broken.jsonl")


@pytest.mark.parametrize(("dataset", "rows"), [(TOUR, 7), (BROKEN, 1)])
def test_the_files_hold_what_one_file_would(tmp_path: Path, dataset: str, rows: int) -> None:
    plain = run_here("render", dataset, "-o", str(tmp_path / "one.jsonl"))
    out = tmp_path / "many.jsonl"
    cut = run_here(
        "render", dataset, "-o", str(out), "--shards", "--engine", "local", "--workers", "1", "--rows-per-shard", str(rows)
    )  # fmt: skip
    manifest = json.loads((tmp_path / "many.manifest.json").read_text(encoding="utf-8"))
    names = [shard["file"] for shard in manifest["shards"]]
    assert len(names) > 1
    assert sorted(path.name for path in tmp_path.glob("many*")) == [*names, "many.manifest.json"]
    pieces = [(tmp_path / name).read_bytes() for name in names]
    assert b"".join(pieces) == (tmp_path / "one.jsonl").read_bytes()
    assert [(shard["requests"], shard["bytes"]) for shard in manifest["shards"]] == [
        (piece.count(b"\n"), len(piece)) for piece in pieces
    ]
    assert manifest["requests"] == sum(shard["requests"] for shard in manifest["shards"])
    where = f"{len(names)} shards (many.manifest.json)"
    assert cut.stderr.decode().replace(where, str(tmp_path / "one.jsonl")) == plain.stderr.decode()
    assert cut.returncode == plain.returncode


def test_files_of_an_earlier_run_are_told(tmp_path: Path) -> None:
    command = ["render", TOUR, "--media", "keep", "-o", str(tmp_path / "r.jsonl"), "--shards", "--engine", "local"]
    assert run_here(*command, "--workers", "1", "--rows-per-shard", "10").returncode == 0
    again = run_here(*command, "--workers", "1", "--rows-per-shard", "20")
    assert "MM900" in again.stderr.decode()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--shards"], "add --engine local"),
        (["--engine", "local", "--emit", "batch", "--shard-rows", "3"], "leave out --engine"),
        (["--engine", "local", "--shards", "--shard-bytes", "3"], "--rows-per-shard"),
    ],
)
def test_options_that_do_not_go_together_are_refused(tmp_path: Path, options: list[str], words: str) -> None:
    done = run_here("render", TOUR, "-o", str(tmp_path / "r.jsonl"), *options)
    assert done.returncode == 2
    assert words in done.stderr.decode()
    assert list(tmp_path.iterdir()) == []
