"""A job for a child process: a function, its arguments, and the bytes of media beside them.

Media are not pickled. The parent writes them from where they lie, and the child reads each into one object, so a
picture is copied once into the pipe and once out of it.
"""

from __future__ import annotations

import importlib
import io
import os
import pickle
import struct
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import BinaryIO, NamedTuple

from mmprompt.errors import MMPromptError
from mmprompt.media.policy import MediaPolicy

LONGEST = 1e6
"""Seconds; no time limit is longer."""

_BESIDE = 1 << 12
"""Byte strings from this length on stand beside the pickle."""

_HEAD = struct.Struct("<QQ")
"""The length of the pickle, and how many byte strings stand beside it; their lengths follow, then the pickle."""


class Job(NamedTuple):
    """A function as ``module:name``, the arguments to call it with, and the seconds it may take."""

    function: str
    arguments: tuple[object, ...]
    named: dict[str, object]
    seconds: float


def name_of(function: Callable[..., object]) -> str:
    """Return the name under which a child process imports ``function``: ``module:name``."""
    return f"{function.__module__}:{function.__qualname__}"


def function_named(name: str) -> Callable[..., object]:
    """Return the function that ``module:name`` names."""
    module, _, attribute = name.partition(":")
    function: Callable[..., object] = getattr(importlib.import_module(module), attribute)
    return function


def run_each(function: str, many: Sequence[tuple[object, ...]]) -> list[object]:
    """Return for each tuple of arguments what a function returns, or the error of ours that it raises: one job of many.

    ``function`` is its name, see ``name_of``.
    """
    found: list[object] = []
    for arguments in many:
        try:
            found.append(function_named(function)(*arguments))
        except MMPromptError as error:
            found.append(error)
    return found


def packed_job(job: Job) -> list[bytes]:
    """Return a job as the buffers to write, one after the other."""
    file = io.BytesIO()
    pickler = _Pickler(file, 5)
    pickler.dump(tuple(job))
    plain = file.getvalue()
    sizes = struct.pack(f"<{len(pickler.beside)}Q", *map(len, pickler.beside))
    return [_HEAD.pack(len(plain), len(pickler.beside)) + sizes + plain, *pickler.beside]


def read_job(file: BinaryIO) -> Job | None:
    """Read the next job; None at the end of the file."""
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    length, count = _HEAD.unpack(head)
    sizes = struct.unpack(f"<{count}Q", file.read(8 * count))
    plain = file.read(length)
    beside = [file.read(size) for size in sizes]
    return Job(*_Unpickler(io.BytesIO(plain), beside).load())


class _Pickler(pickle.Pickler):
    def __init__(self, file: BinaryIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.beside: list[bytes] = []

    def persistent_id(self, value: object) -> int | bytes | None:
        if type(value) is MediaPolicy:
            return _pickled(value)
        if type(value) is not bytes or len(value) < _BESIDE:
            return None
        self.beside.append(value)
        return len(self.beside) - 1


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: BinaryIO, beside: Sequence[bytes]) -> None:
        super().__init__(file)
        self._beside = beside

    def persistent_load(self, known: int | bytes) -> bytes | MediaPolicy:
        return _unpickled(known) if isinstance(known, bytes) else self._beside[known]


@lru_cache(4)
def _pickled(policy: MediaPolicy) -> bytes:
    """Return the pickle of a policy, which is made once and not for each job."""
    return pickle.dumps(policy, 5)


@lru_cache(4)
def _unpickled(policy: bytes) -> MediaPolicy:
    found: MediaPolicy = pickle.loads(policy)  # noqa: S301  # of our own process
    return found


_AT_ONCE = 512
"""Buffers for one system call; systems take 1024."""


def buffers_of(pieces: Iterable[bytes | memoryview]) -> deque[memoryview]:
    """Return the pieces as the queue that ``write_some`` empties."""
    return deque([memoryview(piece) for piece in pieces if len(piece)])


def write_some(descriptor: int, queue: deque[memoryview]) -> None:
    """Write what the pipe takes with one system call, and remove it from the queue.

    Raises:
        BlockingIOError: a pipe that does not block takes nothing now.
    """
    written = os.writev(descriptor, queue if len(queue) <= _AT_ONCE else list(islice(queue, _AT_ONCE)))
    while queue and written >= len(queue[0]):
        written -= len(queue.popleft())
    if written:
        queue[0] = queue[0][written:]
