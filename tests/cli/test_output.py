"""The output of a command: whole or not at all, on the disk before it has its name, its faults named."""

from __future__ import annotations

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
def test_a_full_disk_is_told_with_the_path(rows: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["render", str(rows), "-o", "/dev/full"]) == 2
    assert capfd.readouterr().err == "mmprompt: No space left on device: /dev/full\n"
    words = [sys.executable, "-m", "mmprompt", "render", str(rows)]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (2, "mmprompt: No space left on device: standard output\n")
