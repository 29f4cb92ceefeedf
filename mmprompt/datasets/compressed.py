"""Compressed files: gzip with the standard library, Zstandard with an extra package."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from mmprompt.errors import DatasetError

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
            yield io.BufferedReader(cast("io.RawIOBase", plain), 1 << 17)
    elif head.startswith(ZSTD):
        with _zstd_reader(stream) as plain:
            yield io.BufferedReader(plain, 1 << 17)
    else:
        yield stream


class _Frames(io.RawIOBase):
    """The content of Zstandard frames. A file that ends inside a frame is an error, which the package hides."""

    def __init__(self, stream: BinaryIO, begun: Callable[[], Any], damage: type[Exception]) -> None:
        self._stream = stream
        self._begun = begun
        self._damage = damage
        self._frame: Any = None
        self._rest = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # what BufferedReader passes
        while not self._ready:
            packed = self._rest or self._stream.read(_FEED)
            if not packed:
                if self._frame is not None:
                    raise EOFError
                return 0
            self._unpack(packed)
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _unpack(self, packed: bytes) -> None:
        if self._frame is None:
            self._frame = self._begun()
        try:
            self._ready = memoryview(self._frame.decompress(packed))
        except self._damage as error:
            raise OSError(str(error)) from None
        self._rest = b""
        if self._frame.eof:
            self._rest, self._frame = self._frame.unused_data, None


def _zstd_reader(stream: BinaryIO) -> io.RawIOBase:
    try:
        import zstandard  # noqa: PLC0415  # only where such a file is read
    except ImportError:
        raise DatasetError(
            "reading .zst files needs zstandard", "pip install zstandard, or decompress it: zstd -d FILE", code="MM903"
        ) from None
    return _Frames(stream, zstandard.ZstdDecompressor().decompressobj, zstandard.ZstdError)


def kind_of_damage(error: Exception, head: bytes) -> str:
    """Return the name of a compression whose data are damaged; empty if the error is another."""
    if getattr(error, "errno", None) is not None or not is_compressed(head):
        return ""
    return "gzip" if head.startswith(GZIP) else "Zstandard"
