"""A lock beside a file, so that two runs do not write to one journal. It ends with its process."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from mmprompt.datasets.side_files import side_descriptor
from mmprompt.errors import TaskError, shown


class SideLock:
    """Holds ``NAME.lock`` until it is closed.

    Args:
        path: the file.
        option: the option that names another file.

    Raises:
        TaskError: another run holds it, or something else has its name.
        OSError: the file cannot be made.
    """

    def __init__(self, path: str, option: str = "-o") -> None:
        self.path = f"{path}.lock"
        self._descriptor: int | None = None
        while self._descriptor is None:
            descriptor = side_descriptor(self.path, os.O_RDWR | os.O_CREAT)
            try:
                if os.fstat(descriptor).st_size:
                    what = f"{shown(self.path)} is there, and is not a lock"
                    raise TaskError(what, f"move it away, or {_elsewhere(option)}")
                _lock(descriptor)
                if _is_named(descriptor, self.path):
                    self._descriptor = descriptor
            except (BlockingIOError, PermissionError):
                hint = f"wait until that run ends, or {_elsewhere(option)}"
                raise TaskError(f"another run writes to {shown(path)}", hint) from None
            finally:
                if self._descriptor is None:
                    os.close(descriptor)

    def close(self) -> None:
        """Let go, and remove the file."""
        if self._descriptor is not None:
            with suppress(OSError):  # someone removed it
                os.unlink(self.path)
            os.close(self._descriptor)
            self._descriptor = None


def _elsewhere(option: str) -> str:
    return f"write to another file with {option}"


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # its first byte, which need not be there
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_named(descriptor: int, path: str) -> bool:
    """Return whether an open file still has its name: the run that held it before may have removed it meanwhile."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
