"""What a run in shards shows while it runs, and after ``^C``."""

from __future__ import annotations

import os
import re
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from loopback import serving
from shard_cases import Answers, dataset

from mmprompt.cli.progress import RowCounter, shard_progress
from mmprompt.datasets.crash_record import CrashRecord
from mmprompt.scale.work_folder import WorkFolder


def test_the_bar_moves_with_rows_of_any_shard_and_once_for_each(tmp_path: Path) -> None:
    folder, counter, moves = WorkFolder(str(tmp_path)), RowCounter(), []
    counter.move = lambda rows=1: moves.append(rows)
    folder.save_report(0, {"rows": 20}, ())
    with CrashRecord(folder.file(1, "row"), 1) as record, shard_progress(counter, folder):
        record.done(7)
        end = time.monotonic() + 20
        while sum(moves) != 27 and time.monotonic() < end:
            time.sleep(0.01)
        assert sum(moves) == 27
        counter.add(20)  # the first shard is merged
        folder.save_report(1, {"rows": 15}, ())
        record.remove()
    assert sum(moves) == 35
    assert counter.rows == 20


@pytest.mark.skipif(os.name == "nt", reason="terminals of POSIX, and SIGINT")
def test_a_terminal_shows_rows_before_their_shard_is_done_and_what_to_do_after_an_interrupt(
    tmp_path: Path, interrupted_environment: dict[str, str]
) -> None:
    import fcntl  # these are not there on Windows
    import pty
    import termios

    handler = type("Handler", (Answers,), {"third": threading.Event(), "lock": threading.Lock(), "seconds": 0.05})
    dataset(tmp_path)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    shown = b""
    with serving(handler) as port:
        command = ["run", "data.jsonl", "--base-url", f"http://127.0.0.1:{port}/v1", "--model", "m", "-o", "out.jsonl"]
        process = subprocess.Popen(
            [sys.executable, "-m", "mmprompt", *command, "--engine", "local", "--workers", "1", "--concurrency", "2"],
            stderr=theirs,
            cwd=tmp_path,
            env=interrupted_environment,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
        )
        try:
            os.close(theirs)
            while not re.search(rb" [1-9]\d*/160 ", shown):  # it has one shard
                shown += os.read(ours, 4096)
            process.send_signal(signal.SIGINT)
            while b"answered in" not in shown:
                shown += os.read(ours, 4096)
            assert process.wait(30) == 130
        finally:
            process.kill()
            os.close(ours)
    assert b"\nmmprompt: the same command goes on where this run stopped\r\nmmprompt: interrupted; " in shown
    assert not (tmp_path / "out.jsonl.shards").exists()
