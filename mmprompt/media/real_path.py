"""The real path of an open file, and the way to open a path whose real path is known."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

PLATFORM: str = sys.platform  # a plain string, so that mypy checks every branch
_CALL_MACHINES = ("x86_64", "aarch64")


def descriptor_path(descriptor: int, status: os.stat_result, full: str) -> str:
    """Return the real path of an open file: from the kernel, or from ``full`` if that is still the same file."""
    if PLATFORM == "linux":
        try:
            return os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:  # no /proc here
            pass
    elif PLATFORM == "darwin":
        import fcntl  # noqa: PLC0415  # POSIX only

        answer = fcntl.fcntl(descriptor, getattr(fcntl, "F_GETPATH", 50), b"\x00" * 1024)
        return os.fsdecode(answer.partition(b"\x00")[0])
    return same_file_path(status, full)


def same_file_path(status: os.stat_result, full: str) -> str:
    """Return the real path of ``full`` if it leads to the file with this status, else an empty string."""
    try:
        real = os.path.realpath(full)
        now = os.stat(real)
    except OSError:
        return ""
    return real if (now.st_dev, now.st_ino) == (status.st_dev, status.st_ino) else ""


def linkless_open() -> Callable[[str], int] | None:
    """Return the function that opens a path without links, None where there is none."""
    if PLATFORM != "linux" or sys.maxsize < 1 << 32 or os.uname().machine not in _CALL_MACHINES:
        return None
    if sys.getfilesystemencoding() != "utf-8":
        return None
    try:
        from mmprompt.media.openat2 import linkless  # noqa: PLC0415  # it takes time to load
    except (ImportError, OSError, AttributeError):  # a Python without ctypes, a library without the call
        return None
    return linkless
