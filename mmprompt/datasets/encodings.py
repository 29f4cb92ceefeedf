"""Text that is not UTF-8: read in the encoding that the caller names, and given as UTF-8."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from mmprompt.errors import DatasetError, shown

_CHUNK = 1 << 16


@contextmanager
def transcoded(stream: BinaryIO, encoding: str | None, *, final: bool = True) -> Iterator[BinaryIO]:
    """Give ``stream`` as UTF-8, or unchanged without an encoding. Without ``final`` it may end inside a character.

    Raises:
        DatasetError: the encoding is unknown, or the text is not in it.
    """
    if encoding is None:
        yield stream
        return
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
    except LookupError:
        raise DatasetError(f"unknown encoding {shown(encoding)}", "name one such as utf-16 or gb18030") from None
    try:
        yield io.BufferedReader(_Transcoded(stream, decoder, final), _CHUNK)
    except UnicodeError as error:
        raise DatasetError(
            f"the text is not {encoding}: {error}", "name another with --encoding", code="MM003"
        ) from None


class _Transcoded(io.RawIOBase):
    def __init__(self, stream: BinaryIO, decoder: codecs.IncrementalDecoder, final: bool) -> None:
        self._stream = stream
        self._decoder = decoder
        self._final = final
        self._ready = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # what BufferedReader passes
        while not self._ready and not self._ended:
            chunk = self._stream.read(_CHUNK)
            self._ended = not chunk
            text = self._decoder.decode(chunk, self._ended and self._final)
            self._ready = text.encode("utf-8", "surrogatepass")
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size
