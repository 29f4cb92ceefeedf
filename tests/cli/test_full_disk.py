"""Every command that writes, on a disk that is full: one line, an exit code, and what was there stays."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from command_line import run_here

ROOM = (0, 12 << 10, 300 << 10)
"""Bytes that are left on the disk; on the last no output finds room in full, but many side files do."""

SHAPES = Path(__file__).parents[2] / "fixtures" / "shapes"
ENGINE = ("--engine", "local", "--workers", "1", "--rows-per-shard", "10")
MODEL = ("--model", "builtin:shapes")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows with large pictures, rows with long texts that are wrong, and two journals."""
    folder = tmp_path_factory.mktemp("data")
    chance = random.Random(0)
    header = b"BM" + (54 + 40_000).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little")
    header += b"".join(n.to_bytes(4, "little") for n in (40, 100, 100)) + b"\1\0\x20\0" + bytes(24)
    rows = [{"id": n, "question": f"What is {n}?", "image": f"{n}.bmp", "answer": str(n)} for n in range(40)]
    for n in range(40):
        (folder / f"{n}.bmp").write_bytes(header + chance.randbytes(40_000))
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    wrong = [{"id": n, "content": f"<AIS_IMAGE_START>{n}.none<AIS_CONTENT_TAG>{'x' * 900} {n}"} for n in range(2400)]
    (folder / "wrong.jsonl").write_text("".join(json.dumps(row) + "\n" for row in wrong))
    open_tags = [{"id": n, "content": f"<AIS_TEXT_START>{'x' * 900} {n}", "answer": "x"} for n in range(600)]
    (folder / "open.jsonl").write_text("".join(json.dumps(row) + "\n" for row in open_tags))
    (folder / "task.json").write_text('{"dataset": {"path": "rows.jsonl"}, "model": {"model": "m"}}')
    for name in ("one.jsonl", "two.jsonl"):
        assert run_here("run", SHAPES / "task.yaml", *MODEL, "--limit", "5", "-o", folder / name).returncode == 0
    return folder


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    if sys.platform != "linux" or os.geteuid():
        pytest.skip("mounting a disk takes the rights of root on Linux")
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], capture_output=True, check=False
    ).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def fill(disk: Path, room: int) -> None:
    """Leave so many bytes free."""
    with (disk / "filler").open("wb", buffering=0) as file:
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        for _ in range((free - room) // 4096):
            file.write(bytes(4096))


COMMANDS = {
    "render": (("render", "rows.jsonl", "-o", "{disk}/o.jsonl"), ["o.jsonl"]),
    "errors": (("render", "wrong.jsonl", "-o", "/dev/null", "--errors", "{disk}/e.jsonl"), ["e.jsonl"]),
    "batch": (
        ("render", "task.json", "--emit", "batch", "--target", "vllm", "--shard-rows", "3", "-o", "{disk}/o.jsonl"),
        ["o-00001.jsonl", "o.manifest.json"],
    ),
    "engine": (("render", "rows.jsonl", "-o", "{disk}/o.jsonl", *ENGINE), ["o.jsonl"]),
    "engine shards": (
        ("render", "rows.jsonl", "--shards", "-o", "{disk}/o.jsonl", *ENGINE),
        ["o-00001.jsonl", "o.manifest.json"],
    ),
    "report": (("check", "wrong.jsonl", "--output-format", "html", "--output-file", "{disk}/r.html"), ["r.html"]),
    "report in shards": (("check", "wrong.jsonl", "--output-file", "{disk}/r.txt", *ENGINE), ["r.txt"]),
    "baseline": (("check", "wrong.jsonl", "--baseline", "{disk}/b.json", "--write-baseline"), ["b.json"]),
    "fix": (("check", "open.jsonl", "--fix", "-o", "{disk}/fixed.jsonl"), ["fixed.jsonl"]),
    "jsonl": (("convert", "rows.jsonl", "{disk}/o.jsonl", "--to", "openai"), ["o.jsonl"]),
    "gzip": (("convert", "rows.jsonl", "{disk}/o.jsonl.gz", "--to", "openai"), ["o.jsonl.gz"]),
    "media": (("convert", "rows.jsonl", "{disk}/o.csv", "--to", "csv", "--store", "files"), ["o.csv"]),
    "tar": (("convert", "rows.jsonl", "{disk}/o.tar", "--to", "webdataset"), ["o.tar"]),
    "parquet": (("convert", "rows.jsonl", "{disk}/o.parquet", "--to", "parquet"), ["o.parquet"]),
    "folder": (("convert", "rows.jsonl", "{disk}/folder", "--to", "imagefolder"), []),
    "croissant": (("convert", "rows.jsonl", "{disk}/folder", "--to", "croissant"), []),
    "page": (("view", "rows.jsonl", "--html", "{disk}/page.html"), ["page.html"]),
    "score": (("score", "one.jsonl", "--report", "{disk}/s.html"), ["s.html"]),
    "compare": (("compare", "one.jsonl", "two.jsonl", "--report", "{disk}/c.json"), ["c.json"]),
    "run": (("run", "{shapes}/task.yaml", *MODEL, "-o", "{disk}/j.jsonl"), []),
    "run in shards": (("run", "{shapes}/task.yaml", *MODEL, "-o", "{disk}/j.jsonl", *ENGINE), []),
    "run with a report": (
        ("run", "{shapes}/task.yaml", *MODEL, "-o", "{journal}", "--limit", "5", "--report", "{disk}/s.html"),
        ["s.html"],
    ),
    "init": (("init", "rows.jsonl", "-o", "{disk}/task.yaml"), []),
    "example": (("plugins", "--init", "pytest", "{disk}/example"), []),
}
SMALL = {"run", "run in shards", "score", "compare", "run with a report", "init", "example"}
"""Commands whose outputs may find room."""


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOM)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_costs_one_line_and_nothing_that_was_there(
    name: str, room: int, data: Path, disk: Path, tmp_path: Path
) -> None:
    command, older = COMMANDS[name]
    places = {"disk": disk, "shapes": SHAPES, "journal": tmp_path / "j.jsonl"}
    words = [word.format(**places) for word in command]
    if "parquet" in words:
        pytest.importorskip("pyarrow")
    for each in older:
        (disk / each).write_text('{"findings": []}' if name == "baseline" else "older")
    fill(disk, room)
    before = contents(disk)
    process = [sys.executable, "-m", "mmprompt", *words]
    done = subprocess.run(process, cwd=data, capture_output=True, text=True, timeout=60, check=False)
    if room and name in SMALL and not done.returncode:
        return
    assert done.returncode != 0
    told = [line for line in done.stderr.splitlines() if line.startswith("mmprompt: ")]
    assert told, done.stderr
    assert "No space left on device" in told[-1] or "cannot keep the state" in told[-1], told
    assert "Traceback" not in done.stderr
    assert str(disk) in told[-1]
    if name not in {"errors", "report", "report in shards", "baseline", "fix"}:  # the rows have errors of their own
        assert done.stderr.splitlines() == told[-1:]
    after = contents(disk)
    assert {path: after.get(path) for path in before} == before
    left = after.keys() - before.keys()
    assert not [path for path in left if path.endswith((".part", ".lock", ".tmp"))]
    assert all(path.startswith(("j.jsonl", "o.jsonl.shards/", "r.txt.shards/", "r.html.state")) for path in left), left
    room_again(disk, words, data)


def room_again(disk: Path, words: Sequence[str], data: Path) -> None:
    """The same command goes on, or begins anew, when there is room."""
    (disk / "filler").unlink()
    subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
    process = [sys.executable, "-m", "mmprompt", *words]
    done = subprocess.run(process, cwd=data, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in {0, 1}, done.stderr
    names = os.listdir(disk)
    assert not [name for name in names if name.startswith(".") or name.endswith((".shards", ".lock", ".state"))]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
