"""The output of a command: whole or not at all, on the disk before it has its name, its faults named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mmprompt.cli import main

ROW = '{"question": "?"}\n'


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text(ROW * 3)
    return path


def test_the_file_is_on_the_disk_before_it_has_its_name(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, events = tmp_path / "out.jsonl", []
    flush, rename = os.fsync, os.replace

    def fsync(descriptor: int) -> None:
        flush(descriptor)
        events.append(("flushed", os.fstat(descriptor).st_size))

    def replace(old: str, new: str) -> None:
        events.append(("named", os.stat(old).st_size))
        rename(old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    assert main(["render", str(rows), "-o", str(out)]) == 0
    size = out.stat().st_size
    assert (size > 0, events) == (True, [("flushed", size), ("named", size)])


@pytest.mark.skipif(os.name == "nt", reason="limits of POSIX")
def test_a_file_that_cannot_grow_is_named_and_the_older_one_stays(rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("older")
    rows.write_text(ROW * 20_000)
    code = (
        "import resource, sys; sys.dont_write_bytecode = True;"  # a compiled module would be cut, and stay so
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096));"
        "from mmprompt.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", code, "render", str(rows), "-o", str(out)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"mmprompt: File too large: {out}\n"
    )  # under coverage its own file is too large as well
    assert (out.read_text(), sorted(os.listdir(tmp_path))) == ("older", ["out.jsonl", "rows.jsonl"])


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux")
def test_a_full_disk_is_told_with_the_path(rows: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["render", str(rows), "-o", "/dev/full"]) == 2
    assert capfd.readouterr().err == "mmprompt: No space left on device: /dev/full\n"
    errors = tmp_path / "errors.jsonl"
    assert main(["render", str(rows), "-o", "/dev/full", "--errors", str(errors)]) == 2
    told = [json.loads(line) for line in errors.read_text().splitlines()]
    assert [(one["code"], one["message"]) for one in told] == [("MM900", "No space left on device: /dev/full")]
    capfd.readouterr()
    words = [sys.executable, "-m", "mmprompt", "render", str(rows)]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (2, "mmprompt: No space left on device: standard output\n")


@pytest.mark.skipif(os.name == "nt", reason="limits of POSIX")
def test_a_check_whose_state_finds_no_room_leaves_the_older_report_and_can_go_on(tmp_path: Path) -> None:
    """A limit on the size of files stands for a disk that is full."""
    data = tmp_path / "data.jsonl"
    rows = [{"id": n, "question": f"Why is it {n} that holds? {'x' * 300}", "answer": f"it {n}"} for n in range(400)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report, state = tmp_path / "report.jsonl", tmp_path / "report.jsonl.state"
    report.write_text("older")
    limit = (
        "import resource, sys; sys.dont_write_bytecode = True;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (80_000, resource.RLIM_INFINITY));"
        "from mmprompt.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    words = ["check", str(data), "--select", "ALL", "--output-format", "jsonl", "--output-file", str(report)]
    done = subprocess.run(
        [sys.executable, "-c", limit, *words], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 2
    assert "mmprompt: cannot keep the state of the check (" in done.stderr
    assert done.stderr.splitlines()[0].endswith(f"): {state}")
    assert report.read_text() == "older"
    left = {name for name in os.listdir(tmp_path) if name.endswith((".lock", ".tmp")) or name.startswith(".")}
    assert left == set()
    assert main([*words, "--resume"]) in {0, 1}
    again = report.read_text()
    assert main(words) in {0, 1}
    assert report.read_text() == again
    assert sorted(os.listdir(tmp_path)) == ["data.jsonl", "report.jsonl"]
