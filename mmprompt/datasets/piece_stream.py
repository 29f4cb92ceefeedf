"""Bytes that come in pieces, as a stream."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable

_BUFFER = 1 << 17


class _PieceStream(io.RawIOBase):
    def __init__(self, pieces: Iterable[bytes], close: Callable[[], object] | None) -> None:
        self._pieces = iter(pieces)
        self._rest = memoryview(b"")
        self._close = close

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # what BufferedReader passes
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def close(self) -> None:
        if not self.closed and self._close is not None:
            self._close()
        super().close()


def stream_of(pieces: Iterable[bytes], close: Callable[[], object] | None = None) -> io.BufferedReader:
    """Return a stream of the bytes of ``pieces``, in order; ``close`` is called when it is closed."""
    return io.BufferedReader(_PieceStream(pieces, close), _BUFFER)
