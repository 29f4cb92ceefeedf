"""Compressed files: gzip with the standard library, Zstandard with an extra package."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from mmprompt.datasets.piece_stream import stream_of
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
