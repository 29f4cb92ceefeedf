"""Where a command writes: every output is a whole file under its name, or nothing.

Standard output, pipes and devices are written as they stand, an object of a store when it is complete.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mmprompt.datasets.store_url import StoreURL, as_named, put_object
from mmprompt.datasets.whole_file import faults_of, locked_folder, put, remove_parts, whole_file
from mmprompt.errors import TaskError, shown
from mmprompt.media.outputs import replacing
from mmprompt.targets.chunk_writer import ChunkWriter

if TYPE_CHECKING:
    from mmprompt.datasets.read import Dataset

_STREAMS = ("/dev/std", "/dev/fd/", "/proc/")
"""How the names of streams begin that are open already. They may be files, which then stay the same files."""

_LONGEST_LINE = 1 << 20
_BLOCK = 1 << 20


def check_output(path: str | None) -> None:
    """Refuse an output that cannot become a file, before any work is done."""
    if path is None or path == "-" or isinstance(as_named(path), StoreURL):
        return
    if os.path.isdir(path) or not os.path.basename(path):
        raise TaskError(f"the output {shown(path)} is a folder", "name a file in it")
    if not os.path.isdir(os.path.dirname(os.path.realpath(path))):
        raise TaskError(f"the folder of the output {shown(path)} does not exist", "create it, or write elsewhere")


def check_apart(written: str, *datasets: Dataset | None) -> None:
    """Refuse an output that is a file of datasets which were opened before."""
    for name in [name for dataset in datasets if dataset is not None for name in dataset.files]:
        if os.path.isfile(name) and os.path.isfile(written) and os.path.samefile(name, written):
            raise TaskError(f"{shown(written)} is also an input or output", "write to another file")


def is_stream(path: str) -> bool:
    """Return whether an output is written as it stands: a pipe, a device, or a stream that is open already."""
    return path.startswith(_STREAMS) or not (os.path.isfile(path) or os.path.isdir(path) or not os.path.exists(path))


@contextmanager
def output(path: str | None, *, keeps: bool = False) -> Iterator[ChunkWriter]:
    """Open the output. A regular file gets its name when it is complete; until then an older file of that name stays.

    Args:
        path: the file; None and ``-`` are standard output.
        keeps: the file gets its name also where the block ends with an error: what it has then counts.

    Raises:
        TaskError: standard output is closed, or the file is a medium, or the block reads it too.
        OSError: the output cannot be written; the error names it by ``path``.
    """
    with faults_of(path or "standard output"):
        if path is None or path == "-":
            if sys.stdout is None:
                raise TaskError("standard output is closed", "name a file with -o")
            sys.stdout.flush()
            yield ChunkWriter(sys.stdout.buffer)
        elif isinstance(url := as_named(path), StoreURL):
            with _object(url) as writer:
                yield writer
        elif is_stream(path):
            with open(path, "ab", buffering=0) as file:
                yield ChunkWriter(file)
        else:
            remove_parts(path)
            with replacing(path), whole_file(path, keeps=keeps) as writer:
                yield writer


@contextmanager
def error_output(path: str | None) -> Iterator[ChunkWriter | None]:
    """Open the file of ``--errors``. A run that ends early leaves the errors that it has told. None gives None."""
    if path is None:
        yield None
        return
    with output(path, keeps=True) as writer:
        yield writer


def first_line(path: str) -> bytes:
    """Return the first line of a file that is there, or its beginning if the line is long."""
    with open(path, "rb") as file:
        return file.readline(_LONGEST_LINE)


@contextmanager
def _object(url: StoreURL) -> Iterator[ChunkWriter]:
    """Collect the output in a temporary file, and copy it to the object when it is complete."""
    with working_folder(url) as folder:
        path = os.path.join(folder, "output")
        with open(path, "wb", buffering=0) as file:
            writer = ChunkWriter(file)
            yield writer
        if not writer.discarded:
            put_object(path, url)


@contextmanager
def working_folder(path: str) -> Iterator[str]:
    """Give a new folder for what becomes an output: beside it, if it is a file. The folder is removed at the end."""
    if isinstance(as_named(path), StoreURL) or is_stream(path):
        import tempfile  # noqa: PLC0415  # only for what is no file

        with tempfile.TemporaryDirectory(prefix="mmprompt-") as folder:
            yield folder
        return
    remove_parts(path)
    with locked_folder(path) as folder:
        yield folder


def put_output(made: str, path: str) -> None:
    """Make a complete file or folder of a ``working_folder`` the output ``path``.

    Raises:
        DatasetError: an object of a store cannot be written.
        OSError: the output cannot be written.
    """
    if isinstance(url := as_named(path), StoreURL):
        put_object(made, url)
    elif is_stream(path):
        with open(made, "rb") as file, open(path, "ab", buffering=0) as stream:
            shutil.copyfileobj(file, stream, _BLOCK)
    else:
        put(made, path, synced=False)
