"""Where a command writes: standard output, a file that appears when it is whole, or what is no regular file."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from mmprompt.errors import TaskError, shown
from mmprompt.targets.chunk_writer import ChunkWriter


def check_output(path: str | None) -> None:
    """Refuse, before there is any work, a name that cannot become a file.

    Raises:
        TaskError: it names a folder, or its folder is not there.
    """
    if path is None or path == "-":
        return
    if os.path.isdir(path) or not os.path.basename(path):
        raise TaskError(f"the output {shown(path)} is a folder", "name a file in it")
    if not os.path.isdir(os.path.dirname(os.path.realpath(path))):
        raise TaskError(f"the folder of the output {shown(path)} does not exist", "make it first, or write elsewhere")


@contextmanager
def output(path: str | None) -> Iterator[ChunkWriter]:
    """Open the output.

    A regular file takes its name in the end, when it is whole; until then one that was there stays as it is.

    Raises:
        TaskError: standard output is closed.
        OSError: the output cannot be written, named by ``path``.
    """
    if path is None or path == "-":
        if sys.stdout is None:
            raise TaskError("standard output is closed", "name a file with -o")
        sys.stdout.flush()
        yield ChunkWriter(sys.stdout.buffer)
    elif os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb", buffering=0) as file:
            yield ChunkWriter(file)
    else:
        with _whole_file(path) as file:
            yield ChunkWriter(file)


@contextmanager
def _whole_file(path: str) -> Iterator[BinaryIO]:
    target = os.path.realpath(path)
    # no process number in the name: a container gives the same one to each run, and an earlier one may have been killed
    temporary = os.path.join(os.path.dirname(target), f".{os.path.basename(target)[:60]}.{os.urandom(6).hex()}.part")
    try:
        nameless = _nameless_file(temporary)
        try:
            file = nameless or open(temporary, "xb", buffering=0)  # noqa: SIM115  # closed below
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from None
        with file:
            yield file
            if nameless is not None:
                _give_name(file.fileno(), temporary)
        if os.path.exists(target):
            os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        try:
            os.replace(temporary, target)
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from None
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def _nameless_file(later: str) -> BinaryIO | None:
    """Return a new file that can take the name ``later``; None where the system has no files without names.

    Nothing is left of such a file when the process is killed. An empty one shows that the system can name it.
    """
    flags = getattr(os, "O_TMPFILE", 0) | os.O_WRONLY
    if flags == os.O_WRONLY:
        return None
    folder = os.path.dirname(later)
    try:
        first = os.open(folder, flags, 0o666)
        try:
            _give_name(first, later)
            os.unlink(later)
        finally:
            os.close(first)
        return open(os.open(folder, flags, 0o666), "wb", buffering=0)
    except OSError:  # this file system has none; whatever else is wrong shows when a name is opened
        return None


def _give_name(descriptor: int, name: str) -> None:
    """Link a file that has no name into its folder; the folder's descriptor makes Python follow the link in /proc."""
    folder = os.open(os.path.dirname(name), os.O_RDONLY)
    try:
        os.link(f"/proc/self/fd/{descriptor}", name, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)
