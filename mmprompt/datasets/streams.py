"""A dataset's bytes as readers see them: unpacked, in UTF-8, from one offset to another."""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from mmprompt.errors import DatasetError, shown

_BUFFER = 1 << 17
_CHUNK = 1 << 16
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"

_FEED = 512
"""How many compressed bytes are unpacked at once: they give 16 MiB at most."""


def is_compressed(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` is compressed in a way that can be read."""
    return head.startswith((GZIP, ZSTD))


@contextmanager
def decompressed(stream: BinaryIO, head: bytes) -> Iterator[BinaryIO]:
    """Give a stream that reads what ``stream`` holds, decompressed if ``head`` says that it is compressed.

    Raises:
        DatasetError: Zstandard is needed and not installed.
    """
    if head.startswith(GZIP):
        import gzip  # noqa: PLC0415  # only for compressed files

        with gzip.GzipFile(fileobj=stream) as plain:
            yield io.BufferedReader(cast("io.RawIOBase", plain), _BUFFER)
    elif head.startswith(ZSTD):
        yield stream_of(_zstd_pieces(stream))
    else:
        yield stream


def _zstd_pieces(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the content of Zstandard frames. A file that ends inside a frame is an error, which the package hides."""
    try:
        import zstandard  # noqa: PLC0415  # only where such a file is read
    except ImportError:
        raise DatasetError(
            "reading .zst files needs zstandard", "pip install zstandard, or decompress it: zstd -d FILE", code="MM903"
        ) from None
    frame = None
    while packed := stream.read(_FEED):
        while packed:
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            try:
                yield frame.decompress(packed)
            except zstandard.ZstdError as error:
                raise OSError(str(error)) from None
            packed = b""
            if frame.eof:
                packed, frame = frame.unused_data, None
    if frame is not None:
        raise EOFError


def kind_of_damage(error: Exception, head: bytes) -> str:
    """Return the name of a compression whose data are damaged; empty if the error is another."""
    if getattr(error, "errno", None) is not None or not is_compressed(head):
        return ""
    return "gzip" if head.startswith(GZIP) else "Zstandard"


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
        "".encode(encoding)  # codecs such as rot13 are not of text
        decoder = codecs.getincrementaldecoder(encoding)()
    except (LookupError, UnicodeError):
        raise DatasetError(f"unknown encoding {shown(encoding)}", "name one such as utf-16 or gb18030") from None
    try:
        yield stream_of(_utf8_pieces(stream, decoder, final))
    except UnicodeError as error:
        raise DatasetError(
            f"the text is not {encoding}: {error}", "name another with --encoding", code="MM003"
        ) from None


def _utf8_pieces(stream: BinaryIO, decoder: codecs.IncrementalDecoder, final: bool) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK):
        yield decoder.decode(chunk).encode("utf-8", "surrogatepass")
    yield decoder.decode(b"", final).encode("utf-8", "surrogatepass")


def part_of(stream: BinaryIO, start: int, end: int | None) -> BinaryIO:
    """Return the bytes of a file from one offset to another, or to its end."""
    stream.seek(start)
    return stream if end is None else stream_of(_pieces(stream, end - start))


def _pieces(stream: BinaryIO, left: int) -> Iterator[bytes]:
    while piece := stream.read(min(left, _BUFFER)):
        left -= len(piece)
        yield piece


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
