"""The console of a runner's command, for the processes whose output the command writes to a log file."""

from __future__ import annotations

import os
from contextlib import suppress

_LOGS = "/logs/"
_ANCESTORS = 8


def tell(text: str) -> None:
    """Write a text on the console of the runner's command, if this is a process of it with a log file for its output.

    The system shows that console on Linux only. Elsewhere the text stands in the log file alone.
    """
    with suppress(OSError, ValueError, IndexError):
        log = os.readlink("/proc/self/fd/2")
        if _LOGS not in log or not log.endswith(".out"):
            return
        process = os.getppid()
        for _ in range(_ANCESTORS):
            output = f"/proc/{process}/fd/2"
            if os.readlink(output) != log:
                _write(output, f"\n{text}\n", process)
                return
            with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as stat:
                process = int(stat.read().rpartition(")")[2].split()[1])


def _write(path: str, text: str, owner: int) -> None:
    """Append a text to an output that the process ``owner`` holds open."""
    output = os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOCTTY", 0))
    try:
        before, after = _around_board(output, owner)
        lines = text.replace("\n", "\r\n") if before else text
        os.write(output, before + lines.encode("utf-8", "replace") + after)
    finally:
        os.close(output)


def _around_board(output: int, owner: int) -> tuple[bytes, bytes]:
    """Return what leaves the board of tasks that covers a terminal, and what shows it again; nothing if there is none.

    AISBench's board takes a screen of its own and wipes it several times a second. A line on the screen below stays.
    """
    if not os.isatty(output) or _in_background(output, owner):
        return b"", b""
    with suppress(ImportError):  # a Python without curses has no board
        import curses  # noqa: PLC0415  # loads with a board
        import termios  # noqa: PLC0415  # POSIX only

        with suppress(curses.error, termios.error):  # a terminal of unknown type has no board, nor one that has gone
            if not termios.tcgetattr(output)[3] & termios.ICANON:  # a program that covers the screen reads single keys
                curses.setupterm(fd=output)
                return curses.tigetstr("rmcup") or b"", curses.tigetstr("smcup") or b""
    return b"", b""


def _in_background(terminal: int, process: int) -> bool:
    """Return whether a shell holds the terminal and not the process; False for the terminal of another session.

    A shell that waits for a command reads single keys, too, and covers nothing.
    """
    with suppress(OSError):
        return os.tcgetpgrp(terminal) != os.getpgid(process)
    return False
