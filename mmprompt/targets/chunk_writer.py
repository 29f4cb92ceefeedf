"""Pieces of bytes to a file, many in one call of the kernel."""

from __future__ import annotations

import io
import os
import select
from typing import BinaryIO, Union

AT_ONCE = 256 << 10
"""How many bytes are kept before they are written."""

_LARGEST_CALL = 1 << 30
"""How many bytes one call is given: some kernels refuse sums beyond 2 GiB."""

_Buffer = Union[bytes, "memoryview[int]"]


class ChunkWriter:
    """Collects chunks and writes them in large calls; ``bytes_written`` counts what has reached the file.

    ``file`` is a file descriptor, or a binary file; a plain file on disk or a pipe is written through its descriptor
    (after a flush of what it held), anything else through its ``write``. The writer closes nothing: call ``flush``
    at the end, or use it in a ``with`` statement, which flushes unless an error is on its way.

    Raises:
        OSError: the system refuses to write; what was collected is then lost.
    """

    def __init__(self, file: int | BinaryIO) -> None:
        self.bytes_written = 0
        self._file: BinaryIO | None = None
        self._fd = -1
        self._chunks: list[bytes] = []
        self._size = 0
        if isinstance(file, int):
            self._fd = file
        elif hasattr(os, "writev") and _on_descriptor(file):
            file.flush()
            self._fd = file.fileno()
        else:
            self._file = file

    def write(self, chunks: list[bytes]) -> None:
        """Take the chunks of a record; they must not change any more."""
        self._chunks += chunks
        for chunk in chunks:
            self._size += len(chunk)
        if self._size >= AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write everything that was collected."""
        chunks, self._chunks, size, self._size = self._chunks, [], self._size, 0
        if len(chunks) > 8 and size < 2 * AT_ONCE:
            chunks = [b"".join(chunks)]  # many small pieces cost the kernel more than one copy
        if self._file is not None:
            _write_file(self._file, chunks)
        elif hasattr(os, "writev"):
            _write_vector(self._fd, chunks, size)
        else:
            _write_plain(self._fd, chunks)
        self.bytes_written += size

    def __enter__(self) -> ChunkWriter:
        """Return the writer."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Flush, unless an error ends the block."""
        if kind is None:
            self.flush()


def _on_descriptor(file: BinaryIO) -> bool:
    """Say whether what is written to the file reaches its descriptor as it is (not so where it compresses)."""
    raw = file.raw if type(file) is io.BufferedWriter else file
    return type(raw) is io.FileIO


def _write_vector(fd: int, chunks: list[bytes], size: int) -> None:
    """Write all chunks, ``size`` bytes together, to a descriptor, whatever part of them a call takes."""
    taken = 0
    if len(chunks) <= _IOV_MAX and size <= _LARGEST_CALL:  # nearly always, and then one call does it
        try:
            taken = os.writev(fd, chunks)
        except BlockingIOError:
            taken = 0
        if taken == size:
            return
    rest: list[_Buffer] = list(chunks)
    at = _advance(rest, 0, taken)
    while at < len(rest):
        try:
            taken = os.writev(fd, _batch(rest, at))
        except BlockingIOError:
            select.select([], [fd], [])  # a pipe that its other end made non-blocking
        else:
            at = _advance(rest, at, taken)


def _batch(rest: list[_Buffer], at: int) -> list[_Buffer]:
    """Return as many chunks from ``at`` on as one call takes; of a chunk that is too large alone, its beginning."""
    batch: list[_Buffer] = []
    size = 0
    for chunk in rest[at : at + _IOV_MAX]:
        size += len(chunk)
        if size > _LARGEST_CALL:
            return batch or [memoryview(chunk)[:_LARGEST_CALL]]
        batch.append(chunk)
    return batch


def _advance(rest: list[_Buffer], at: int, taken: int) -> int:
    """Return where the next call begins once ``taken`` bytes from ``at`` on are written; a chunk cut in two is cut."""
    while at < len(rest) and taken >= len(rest[at]):
        taken -= len(rest[at])
        at += 1
    if taken:
        rest[at] = memoryview(rest[at])[taken:]
    return at


def _write_plain(fd: int, chunks: list[bytes]) -> None:
    for chunk in chunks:
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(fd, rest[:_LARGEST_CALL]) :]


def _write_file(file: BinaryIO, chunks: list[bytes]) -> None:
    for chunk in chunks:
        rest = memoryview(chunk)
        while rest:
            taken = file.write(rest)
            rest = rest[len(rest) if taken is None else taken :]


def _iov_max() -> int:
    try:
        most = os.sysconf("SC_IOV_MAX")
    except (AttributeError, OSError, ValueError):
        return 16  # what POSIX promises
    return most if most > 0 else 1024


_IOV_MAX = _iov_max()
