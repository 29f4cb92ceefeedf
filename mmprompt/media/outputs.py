"""The files that a command is about to replace: nothing that reads rows, task files or media takes one of them.

An output may have the name of a medium, or of a file that another one names. Before it is replaced, each file that is
opened is compared with the outputs that are there already, by device and inode: they are few, so this takes no memory
and no time, and it finds links and other names too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import BinaryIO

from mmprompt.errors import TaskError, shown
from mmprompt.media.media_types import sniff

Identity = tuple[int, int]
"""The device and the inode of a file."""

REPLACED: dict[Identity, str] = {}
"""The files that are about to be replaced, and how the caller calls them."""

_HEAD_BYTES = 4096
_ELSEWHERE = "write to another file"


class OutputReadError(TaskError):
    """A file was opened that is about to be replaced."""


class _Opened(Exception):  # noqa: N818  # becomes the error above
    """The same where it was opened: no ``MMPromptError``, which may cost one row only. Here the command must end."""


@contextmanager
def replacing(*paths: str | None) -> Iterator[None]:
    """Have the readers refuse these files for the time of a ``with`` block, which is about to replace them.

    Paths that name no regular file, such as pipes, and None are left out.

    Raises:
        TaskError: a file is a medium, or two of them are the same.
        OutputReadError: the block opens one of them.
    """
    own = _identities(paths)
    new = {identity: path for identity, path in own.items() if identity not in REPLACED}
    REPLACED.update(new)
    try:
        yield
    except _Opened as error:
        raise OutputReadError(str(error), _ELSEWHERE) from None
    finally:
        for identity in new:
            REPLACED.pop(identity, None)


def require_apart(*paths: str | None) -> None:
    """Refuse outputs of which two are the same, or one is a medium; see ``replacing``."""
    _identities(paths)


def _identities(paths: Sequence[str | None]) -> dict[Identity, str]:
    """Return the files of these names that are there."""
    own: dict[Identity, str] = {}
    names: set[str] = set()
    for path in paths:
        if path is None or path == "-" or (os.path.exists(path) and not os.path.isfile(path)):
            continue
        real = os.path.realpath(path)
        identity = _identity_of_no_medium(real, path) if os.path.isfile(real) else None
        if real in names or identity in own:
            raise TaskError(f"{shown(path)} is also an input or output", _ELSEWHERE)
        names.add(real)
        if identity is not None:
            own[identity] = path
    return own


def _identity_of_no_medium(real: str, path: str) -> Identity:
    """Return the identity of a file, and refuse one whose first bytes are those of a medium."""
    status, head = os.stat(real), b""
    with suppress(PermissionError), open(real, "rb") as file:
        head = file.read(_HEAD_BYTES)
    if (kind := sniff(head)) is not None:
        raise TaskError(f"{shown(path)} is a medium ({kind.name}), and would be replaced", _ELSEWHERE)
    return status.st_dev, status.st_ino


def refuse_replaced(status: os.stat_result, what: str = "an input or output") -> None:
    """Refuse a file that was opened, if it is about to be replaced; ``what`` it is also.

    What this raises becomes an ``OutputReadError`` where the block of ``replacing`` ends.
    """
    path = REPLACED.get((status.st_dev, status.st_ino)) if REPLACED else None
    if path is not None:
        raise _Opened(f"{shown(path)} is also {what}")


def refuse_standard_input() -> None:
    """Refuse standard input if it is a file that is about to be replaced."""
    try:
        status = os.fstat(sys.stdin.fileno())
    except (OSError, ValueError):  # a program has put something else in its place
        return
    refuse_replaced(status)


def opened_input(path: str, *, buffering: int = -1, opener: Callable[[str, int], int] | None = None) -> BinaryIO:
    """Open a file that the command reads, in binary; the arguments are those of ``open``.

    Raises:
        OSError: it cannot be opened.
    """
    file: BinaryIO = open(path, "rb", buffering=buffering, opener=opener)  # noqa: SIM115  # the caller closes it
    try:
        refuse_replaced(os.fstat(file.fileno()))
    except BaseException:
        file.close()
        raise
    return file
