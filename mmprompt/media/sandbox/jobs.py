"""A job for a child process: a function, its arguments, and the bytes of media beside them.

Media are not pickled. The parent writes them from where they lie, and the child reads each into one object. They go
through a file in memory where the system has that: it keeps its pages, and a pipe takes new ones for each picture.
"""

from __future__ import annotations

import importlib
import io
import os
import pickle
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, islice
from typing import BinaryIO, NamedTuple

from mmprompt.errors import MMPromptError
from mmprompt.media.policy import MediaPolicy

LONGEST = 1e6
"""Seconds; no time limit is longer."""

_BESIDE = 1 << 12
"""Byte strings from this length on stand beside the pickle."""

_HEAD = struct.Struct("<QQ?")
"""The length of the pickle, the number of byte strings beside it, and whether these are in the media file.

Their lengths follow, then the pickle. Strings that are not in the media file follow the pickle in the pipe."""

MOST_IN_FILE = 4 << 20
"""Bytes of the media file, which holds one job. A larger job goes through the pipe."""


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


def run_each(function: str, many: Sequence[tuple[object, ...]], seconds: float) -> list[object]:
    """Return for each tuple of arguments what a function returns, or the error of ours that it raises: one job of many.

    ``function`` is its name, see ``name_of``. After so many seconds no further call begins, and the list is shorter.
    """
    found: list[object] = []
    last = time.monotonic() + seconds
    for arguments in many:
        if time.monotonic() > last:
            break
        try:
            found.append(function_named(function)(*arguments))
        except MMPromptError as error:
            found.append(error)
    return found


def packed_job(job: Job) -> list[bytes]:
    """Return a job as its pickle and the byte strings beside it."""
    file = io.BytesIO()
    pickler = _Pickler(file, 5)
    pickler.dump(tuple(job))
    return [file.getvalue(), *pickler.beside]


def begin_job(job: Sequence[bytes], media_file: int) -> list[bytes]:
    """Write the byte strings of a packed job to the media file, and return the buffers for the pipe.

    Args:
        job: see ``packed_job``. The job before it must be answered.
        media_file: the descriptor of the file in memory; -1 if there is none.
    """
    plain, *beside = job
    sizes = [*map(len, beside)]
    in_file = media_file >= 0 and sum(sizes) <= MOST_IN_FILE and _is_written(media_file, beside)
    head = _HEAD.pack(len(plain), len(beside), in_file) + struct.pack(f"<{len(beside)}Q", *sizes)
    return [head, plain] if in_file else [head, plain, *beside]


def _is_written(media_file: int, pieces: Sequence[bytes]) -> bool:
    """Return whether all pieces could be written to a file; it has to fit into the machine's memory."""
    try:
        return len(pieces) <= _AT_ONCE and os.pwritev(media_file, pieces, 0) == sum(map(len, pieces))
    except OSError:
        return False


def read_job(file: BinaryIO, media_file: int) -> Job | None:
    """Read the next job; None at the end of the pipe ``file``. ``media_file`` is as in ``begin_job``.

    Raises:
        EOFError: the media file is shorter than the job says.
    """
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    length, count, in_file = _HEAD.unpack(head)
    sizes = struct.unpack(f"<{count}Q", file.read(8 * count))
    plain = file.read(length)
    beside: list[bytes] = []
    for at, size in zip(accumulate(sizes, initial=0), sizes, strict=False):
        beside.append(os.pread(media_file, size, at) if in_file else file.read(size))
        if len(beside[-1]) != size:
            raise EOFError
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
