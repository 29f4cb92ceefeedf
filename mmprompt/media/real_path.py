"""Real paths of files: where a cache keeps its blobs, what a path leads to now, and how to open one without links."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

PLATFORM: str = sys.platform  # a plain string, so that mypy checks every branch
_CALL_MACHINES = ("x86_64", "aarch64")


def blobs_folder(root: str) -> str:
    """Return the ``blobs`` folder, with a final slash, of the Hugging Face cache repository that holds ``root``.

    ``root`` is a real path such as ``…/hub/datasets--org--name/snapshots/<revision>/``. For other paths the result is
    an empty string.
    """
    names = root.split("/")
    for index in range(len(names) - 1, 0, -1):
        repository = names[index - 1]
        if names[index] == "snapshots" and repository.startswith(("datasets--", "models--", "spaces--")):
            return "/".join((*names[:index], "blobs", ""))
    return ""


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
    # Android ends a process that makes the call, where other systems refuse it
    if sys.getfilesystemencoding() != "utf-8" or hasattr(sys, "getandroidapilevel"):
        return None
    try:
        from mmprompt.media.openat2 import linkless  # noqa: PLC0415  # it takes time to load
    except (ImportError, OSError, AttributeError, MemoryError):  # no ctypes, no such call, or a system that forbids it
        return None
    return linkless


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
