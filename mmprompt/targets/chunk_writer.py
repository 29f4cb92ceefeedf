"""Writes pieces of bytes to a file, many in one system call."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from functools import partial
from typing import BinaryIO, Union

AT_ONCE = 256 << 10
"""How many bytes are collected before they are written."""

_MANY = 256
"""The most chunks that are collected: short lines are joined while they are still in the processor's cache."""

_SMALL = 4096
"""Chunks with fewer bytes than this on average are joined."""

_LARGEST_CALL = 1 << 30
"""The most bytes of one system call. Some kernels refuse more than 2 GiB."""

_MOST_CHUNKS = 1024
"""The most chunks of one system call: ``IOV_MAX`` of Linux, macOS and the BSDs."""

_Buffer = Union[bytes, "memoryview[int]"]


class ChunkWriter:
    """Collects chunks and writes them in large calls. ``bytes_written`` counts the bytes that have reached the file.

    Set ``discarded`` if all rows failed and the file is not wanted: a file of that name then stays as it was.

    ``file`` is a file descriptor or a binary file. A plain file on disk or a pipe is flushed first, then written
    through its descriptor. Any other file is written through its ``write``. The writer closes nothing: call ``flush``
    at the end, or use the writer in a ``with`` statement, which flushes unless an exception leaves the block.

    Raises:
        OSError: the system refuses to write. The collected chunks are then lost.
    """

    def __init__(self, file: int | BinaryIO) -> None:
        self.bytes_written = 0
        self.discarded = False
        self._chunks: list[_Buffer] = []
        self._size = 0
        if not isinstance(file, int) and _reaches_descriptor(file):
            file.flush()
            file = file.fileno()
        if not isinstance(file, int):
            self._write: Callable[[list[_Buffer], int], None] = partial(_write_each, file.write)
        elif hasattr(os, "writev"):
            self._write = partial(_write_vector, file)
        else:
            self._write = partial(_write_each, partial(os.write, file))

    def write(self, chunks: list[bytes]) -> None:
        """Take the chunks of a record. They must not change any more."""
        self._chunks += chunks
        size = self._size
        for chunk in chunks:
            size += len(chunk)
        self._size = size
        if size >= AT_ONCE or len(self._chunks) >= _MANY:
            self.flush()

    write_rows = write
    """Take records of one chunk each."""

    def flush(self) -> None:
        """Write everything that was collected."""
        chunks, self._chunks, size, self._size = self._chunks, [], self._size, 0
        if len(chunks) > 8 and size < len(chunks) * _SMALL:
            chunks = [b"".join(chunks)]  # many small chunks cost the kernel more than one copy
        self._write(chunks, size)
        self.bytes_written += size

    def __enter__(self) -> ChunkWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Flush, unless an exception leaves the block."""
        if kind is None:
            self.flush()


def _reaches_descriptor(file: BinaryIO) -> bool:
    """Return whether bytes written to the file reach its descriptor unchanged. They do not if it compresses."""
    raw = file.raw if type(file) is io.BufferedWriter else file
    return type(raw) is io.FileIO


def _write_vector(fd: int, chunks: list[_Buffer], size: int) -> None:
    """Write all chunks, ``size`` bytes together, with ``writev``, however many bytes each call takes."""
    most, at = _MOST_CHUNKS, 0
    if size > _LARGEST_CALL:
        chunks = [memoryview(c)[i : i + _LARGEST_CALL] for c in chunks for i in range(0, len(c), _LARGEST_CALL)]
        most = 1
    while at < len(chunks):
        try:
            taken = os.writev(fd, chunks[at : at + most])
        except BlockingIOError:
            import select  # noqa: PLC0415  # rarely needed

            select.select([], [fd], [])  # a pipe that the process at its other end made non-blocking
            continue
        if taken == size:
            return  # all at once, as nearly always
        while at < len(chunks) and taken >= len(chunks[at]):
            taken -= len(chunks[at])
            at += 1
        if taken:
            chunks[at] = memoryview(chunks[at])[taken:]


def _write_each(write: Callable[[memoryview[int]], int | None], chunks: list[_Buffer], _size: int) -> None:
    """Write the chunks one by one, however many bytes each call takes. ``None`` stands for all of them."""
    for chunk in chunks:
        rest = memoryview(chunk)
        while rest:
            taken = write(rest)
            rest = rest[len(rest) if taken is None else taken :]
