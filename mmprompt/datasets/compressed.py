"""Compressed files: gzip with the standard library, Zstandard with an extra package."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from mmprompt.errors import DatasetError

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


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
        with gzip.GzipFile(fileobj=stream) as plain:
            yield io.BufferedReader(cast("io.RawIOBase", plain), 1 << 17)
    elif head.startswith(ZSTD):
        with _zstd_reader(stream) as plain:
            yield io.BufferedReader(cast("io.RawIOBase", plain), 1 << 17)
    else:
        yield stream


def _zstd_reader(stream: BinaryIO) -> BinaryIO:
    try:
        import zstandard  # noqa: PLC0415  # only where such a file is read
    except ImportError:
        raise DatasetError(
            "reading .zst files needs zstandard", "pip install zstandard, or decompress it: zstd -d FILE"
        ) from None
    opened: BinaryIO = zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)
    return opened


def kind_of_damage(error: OSError, head: bytes) -> str:
    """Return the name of a compression whose data are damaged; empty if the error is another."""
    if error.errno is not None or not is_compressed(head):
        return ""
    return "gzip" if head.startswith(GZIP) else "Zstandard"
