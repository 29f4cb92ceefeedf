"""Writes buffers to a pipe one after the other, without joining them first."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from itertools import islice

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
