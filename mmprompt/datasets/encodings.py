"""Text that is not UTF-8: read in the encoding that the caller names, and given as UTF-8."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from mmprompt.datasets.piece_stream import stream_of
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
        yield stream_of(_utf8_pieces(stream, decoder, final))
    except UnicodeError as error:
        raise DatasetError(
            f"the text is not {encoding}: {error}", "name another with --encoding", code="MM003"
        ) from None


def _utf8_pieces(stream: BinaryIO, decoder: codecs.IncrementalDecoder, final: bool) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK):
        yield decoder.decode(chunk).encode("utf-8", "surrogatepass")
    yield decoder.decode(b"", final).encode("utf-8", "surrogatepass")
