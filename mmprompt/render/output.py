"""Where lines go: standard output, a pipe or device, an object in a store, or a file named when it is complete."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from mmprompt.datasets.store_url import StoreURL, as_named, put_object
from mmprompt.errors import TaskError, shown
from mmprompt.targets.chunk_writer import ChunkWriter

_LONGEST_LINE = 1 << 20


def check_output(path: str | None) -> None:
    """Refuse an output that cannot become a file, before any work is done."""
    if path is None or path == "-" or isinstance(as_named(path), StoreURL):
        return
    if os.path.isdir(path) or not os.path.basename(path):
        raise TaskError(f"the output {shown(path)} is a folder", "name a file in it")
    if not os.path.isdir(os.path.dirname(os.path.realpath(path))):
        raise TaskError(f"the folder of the output {shown(path)} does not exist", "create it, or write elsewhere")


def check_apart(written: str | None, *others: str | None) -> None:
    """Refuse an output that the run also reads, or writes under another option."""
    if written is None or (os.path.exists(written) and not os.path.isfile(written)):
        return
    for name in others:
        if name is not None and os.path.realpath(name) == os.path.realpath(written):
            raise TaskError(f"{shown(written)} is also an input or output", "write to another file")
        if name is not None and os.path.isfile(name) and os.path.isfile(written) and os.path.samefile(name, written):
            raise TaskError(f"{shown(written)} is also an input or output", "write to another file")


@contextmanager
def output(path: str | None) -> Iterator[ChunkWriter]:
    """Open the output.

    A regular file appears under its name when it is complete. Until then an older file of that name stays.

    Raises:
        TaskError: standard output is closed.
        OSError: the output cannot be written, named by ``path``.
    """
    try:
        if path is None or path == "-":
            if sys.stdout is None:
                raise TaskError("standard output is closed", "name a file with -o")
            sys.stdout.flush()
            yield ChunkWriter(sys.stdout.buffer)
        elif isinstance(url := as_named(path), StoreURL):
            with _object(url) as writer:
                yield writer
        elif os.path.exists(path) and not os.path.isfile(path):
            with open(path, "wb", buffering=0) as file:
                yield ChunkWriter(file)
        else:
            with _whole_file(path) as writer:
                yield writer
    except OSError as error:
        if error.filename is None:  # a write knows only the descriptor
            error.filename = path or "standard output"
        raise


@contextmanager
def data_output(path: str | None) -> Iterator[BinaryIO | None]:
    """Open a file that is written as the run goes on; a run that ends early leaves what it has. None gives None."""
    if path is None:
        yield None
        return
    with open(path, "wb", buffering=0) as file:
        yield file


def first_line(path: str) -> bytes:
    """Return the first line of a file that is there, or its beginning if the line is long."""
    with open(path, "rb") as file:
        return file.readline(_LONGEST_LINE)


@contextmanager
def _object(url: StoreURL) -> Iterator[ChunkWriter]:
    """Collect the output in a temporary file, and copy it to the object when it is complete."""
    import tempfile  # noqa: PLC0415  # loads with an output in a store

    with tempfile.TemporaryDirectory(prefix="mmprompt-") as folder:
        path = os.path.join(folder, "output")
        with open(path, "wb", buffering=0) as file:
            writer = ChunkWriter(file)
            yield writer
        if not writer.discarded:
            put_object(path, url)


@contextmanager
def _whole_file(path: str) -> Iterator[ChunkWriter]:
    target = os.path.realpath(path)
    # no process number in the name: in a container it repeats, and the file of a killed run may be left
    temporary = os.path.join(os.path.dirname(target), f".{os.path.basename(target)[:60]}.{os.urandom(6).hex()}.part")
    try:
        nameless = _nameless_file(temporary)
        try:
            file = nameless or open(temporary, "xb", buffering=0)  # noqa: SIM115  # closed below
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from None
        with file:
            writer = ChunkWriter(file)
            yield writer
            os.fsync(file.fileno())  # before the name: a crash leaves the older file or the whole new one
            if nameless is not None and not writer.discarded:
                _give_name(file.fileno(), temporary)
        if writer.discarded:
            if nameless is None:
                os.unlink(temporary)
            return
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
    """Return a new file without a name that can get the name ``later``; None if the system has no such files.

    If the process is killed, nothing is left of it. An empty file is named first, to see that the system can do it.
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
    except OSError:  # the file system has none; other faults show when a named file is opened
        return None


def _give_name(descriptor: int, name: str) -> None:
    """Give a file without a name its name; the folder's descriptor makes Python follow the link in /proc."""
    folder = os.open(os.path.dirname(name), os.O_RDONLY)
    try:
        os.link(f"/proc/self/fd/{descriptor}", name, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)
