"""What a runner's process tells on the console of the runner's command, also while a board of tasks covers it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux shows another's console")

TOLD = "mmprompt: 2 of 60 rows\n  rows.jsonl:8: gone\n  rows.jsonl:24: text"
WORKER = f"from mmprompt.plugins.bridge.console import tell; tell({TOLD!r})"
RUNNER = """
import curses, subprocess, sys, time

folder, worker, covered = sys.argv[1:]

def start():
    with open(folder + "/logs/task.out", "wb") as log:
        return subprocess.Popen([sys.executable, "-c", worker], stdout=log, stderr=log)

def board(screen):
    task, last = start(), 2
    while last:
        screen.clear()
        screen.addstr(0, 0, "BOARD")
        screen.refresh()
        time.sleep(0.05)
        last -= task.poll() is not None

curses.wrapper(board) if covered else start().wait(60)
print("OVER")
"""
SHELL = """
import fcntl, os, subprocess, sys, termios, tty

fcntl.ioctl(0, termios.TIOCSCTTY, 0)
tty.setcbreak(0)  # as it waits for the next command
subprocess.run(sys.argv[1:], preexec_fn=os.setpgrp)
"""
COVER, UNCOVER = "\x1b[?1049h", "\x1b[?1049l"


def on_terminal(folder: Path, environment: dict[str, str], covered: str, *shell: str) -> str:
    """What a runner prints on a terminal, while a process of it tells something; ``shell`` starts the runner."""
    (folder / "logs").mkdir()
    ours, theirs = os.openpty()
    words = [*shell, sys.executable, "-c", RUNNER, str(folder), WORKER, covered]
    environment = {**environment, "TERM": "xterm-256color", "LINES": "24", "COLUMNS": "80"}
    printed = b""
    with subprocess.Popen(
        words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=bool(shell)
    ) as runner:
        os.close(theirs)
        until = time.monotonic() + 60
        try:
            while time.monotonic() < until:
                printed += os.read(ours, 65536)
        except OSError:  # the last process has closed the terminal
            pass
        finally:
            runner.kill()
            os.close(ours)
    return printed.decode()


def test_lines_stay_when_the_board_of_tasks_has_gone(tmp_path: Path, command_environment: dict[str, str]) -> None:
    printed = on_terminal(tmp_path, command_environment, "covered")
    assert COVER in printed, printed
    stays = re.sub(re.escape(COVER) + "(.*?)" + re.escape(UNCOVER), "", printed, flags=re.DOTALL)
    assert "BOARD" not in stays
    assert TOLD.replace("\n", "\r\n") in stays, printed
    assert stays.index(TOLD[:9]) < stays.index("OVER")
    assert printed.index("BOARD") < printed.index(TOLD[:9]) < printed.rindex("BOARD")  # it goes on


def test_a_terminal_without_a_board_gets_the_lines_alone(tmp_path: Path, command_environment: dict[str, str]) -> None:
    printed = on_terminal(tmp_path, command_environment, "")
    assert printed.replace("\r\n", "\n") == f"\n{TOLD}\nOVER\n"


def test_the_prompt_of_a_shell_is_no_board(tmp_path: Path, command_environment: dict[str, str]) -> None:
    printed = on_terminal(tmp_path, command_environment, "", sys.executable, "-c", SHELL)
    assert printed.replace("\r\n", "\n") == f"\n{TOLD}\nOVER\n"
