"""The files that lie beside an output or a dataset: manifests, plans, locks, states, journals and baselines.

Anybody may have put them there. Each is a regular file: a link would lead to another one, and a pipe would never end.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from mmprompt.datasets.whole_file import faults_of, remove_parts, whole_file
from mmprompt.errors import TaskError, shown
from mmprompt.media.outputs import refuse_replaced, replacing
from mmprompt.targets.chunk_writer import ChunkWriter

LARGEST = 1 << 28
"""The most bytes of a file that is read whole."""

_FLAGS = 0
for _name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT"):
    _FLAGS |= getattr(os, _name, 0)


def side_bytes(path: str, *, typed: bool = False, most: int = LARGEST) -> bytes:
    """Return what a file holds; otherwise as ``opened_side``.

    Raises:
        TaskError: it has more than ``most`` bytes.
    """
    with opened_side(path, typed=typed) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise TaskError(f"{shown(path)} has more than {most >> 20} MiB", "move it away, or name another file")
    return data


def opened_side(path: str, *, typed: bool = False, own: bool = False) -> BinaryIO:
    """Open a regular file for reading. Only one whose path the caller ``typed`` may be a link.

    ``own``: the command goes on with the file, so that it is read and then replaced.

    Raises:
        TaskError: it is no regular file, or a link.
        OSError: it cannot be opened.
    """
    file = open(side_descriptor(path, os.O_RDONLY, typed=typed), "rb")  # noqa: SIM115  # the caller closes it
    try:
        if not own:
            refuse_replaced(os.fstat(file.fileno()))
    except BaseException:
        file.close()
        raise
    return file


def side_descriptor(path: str, flags: int, *, typed: bool = False) -> int:
    """Return a descriptor of a regular file, opened or made with these flags; errors as in ``opened_side``."""
    follow = 0 if typed else getattr(os, "O_NOFOLLOW", 0)
    if not typed and not follow:
        require_regular(path)
    try:
        descriptor = os.open(path, flags | _FLAGS | follow, 0o666)
    except OSError:
        require_regular(path, typed=typed)  # a link, a socket, or a folder that is written
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        require_regular(path, typed=typed)
        raise _irregular(path, "no regular file")
    return descriptor


def require_regular(path: str, *, typed: bool = False) -> None:
    """Refuse what is there under this name, if it is no regular file, or a link that the caller has not ``typed``.

    Raises:
        TaskError: it is.
    """
    try:
        mode = (os.stat if typed else os.lstat)(path).st_mode
    except OSError:
        return
    if not stat.S_ISREG(mode):
        kinds = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFDIR: "a folder", stat.S_IFSOCK: "a socket"}
        raise _irregular(path, kinds.get(stat.S_IFMT(mode), "a device"))


def _irregular(path: str, kind: str) -> TaskError:
    return TaskError(f"{shown(path)} is {kind}, and only a regular file is used", "move it away, or name another file")


@contextmanager
def side_output(path: str, *, cleans: bool = True) -> Iterator[ChunkWriter]:
    """Open a file beside an output for writing. It gets its name when it is complete.

    Args:
        path: the file. An older one is replaced, but no link and nothing that is no regular file.
        cleans: remove what killed runs have left of it. In a folder of our own, which is removed whole, nobody need.

    Raises:
        TaskError: what is there is no regular file, or it is a medium.
        OSError: it cannot be written; the error names it.
    """
    require_regular(path)
    if cleans:
        remove_parts(path)
    with faults_of(path), replacing(path), whole_file(path) as writer:
        yield writer
