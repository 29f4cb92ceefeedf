"""The bytes of one dataset file, opened when its rows are read and closed after the last one."""

from __future__ import annotations

import copy
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from typing import BinaryIO, cast

from mmprompt.datasets.span import WHOLE, Span
from mmprompt.datasets.store_url import StoreURL, opened_object
from mmprompt.datasets.streams import decompressed, is_compressed, kind_of_damage, part_of, stream_of, transcoded
from mmprompt.errors import DatasetError, shown
from mmprompt.media.outputs import opened_input, refuse_standard_input

STDIN = "-"
_HEAD = 1 << 16
_LONGEST = 1 << 26  # a first line longer than this is judged by its beginning
_BUFFER = 1 << 17
_COMPARED = 1000  # files among which one of a name alike is sought
_ALIKE = 0.8
_COUNTED = 1 << 30  # bytes: the lines of a larger file take too long to count


class DatasetFile:
    """A file that can be read many times, or a stream (standard input, a pipe) that can be read once.

    ``name`` is the path as given. ``root`` is the directory where its media paths begin, None for a stream. ``head``
    holds the first bytes: at least the first line that is not blank, unless that line is very long. A file compressed
    with gzip or Zstandard is decompressed. Text in another ``encoding`` is given as UTF-8. An ``opener`` opens a file
    that the data name, and refuses what is no regular file; it takes the path and flags, as that of ``open``. Readers
    yield the rows of ``span``: a part of the file, if ``can_be_cut``.
    """

    __slots__ = ("_encoding", "_opener", "_packed", "_spent", "_stream", "head", "name", "root", "span")

    def __init__(
        self,
        path: str | os.PathLike[str],
        encoding: str | None = None,
        opener: Callable[[str, int], int] | None = None,
        *,
        pipe: bool = False,
    ) -> None:
        """Read the head of the file. It may be a ``pipe`` or device if the caller named it: others may never end.

        Raises:
            DatasetError: the file is missing, a directory or unreadable, or the encoding is unknown.
        """
        self.name = os.fspath(path)
        self.root: str | None = None
        self._stream: BinaryIO | None = None
        self._spent = False
        self._packed = b""
        self._encoding = encoding
        self._opener = opener
        self.span = WHOLE
        if self.name == STDIN:
            self._stream = sys.stdin.buffer
            refuse_standard_input()
            self.head = self._plain_head(_head_of(self._stream, 1))
            return
        try:
            if isinstance(self.name, StoreURL):
                with self._open() as stream:
                    self.head = self._plain_head(_head_of(stream, _HEAD))
            elif opener is not None or stat.S_ISREG(os.stat(self.name).st_mode):
                self.root = os.path.dirname(self.name) or os.curdir
                with opened_input(self.name, opener=opener) as stream:
                    self.head = self._plain_head(_head_of(stream, _HEAD))
            elif not (pipe or os.path.isdir(self.name)):
                raise DatasetError(f"{shown(self.name)} is no regular file", "name it itself to read from it")
            else:
                self._stream = opened_input(self.name)  # closed at the end of its one reading
                self.head = self._plain_head(_head_of(self._stream, 1))
        except (OSError, ValueError) as error:
            raise _unreadable(self.name, error) from None

    def _plain_head(self, head: bytes) -> bytes:
        """Return the head as readers see it; that of a compressed stream, readable only once, stays compressed."""
        if is_compressed(head):
            self._packed = head[:8]
            if self._stream is None:
                with self.opened() as stream:
                    return _head_of(stream, _HEAD)
            return head
        if self._encoding is None:
            return head
        with transcoded(io.BytesIO(head), self._encoding, final=False) as stream:
            return stream.read()

    def shorten(self) -> None:
        """Drop most of a long head, which only recognition needs. A stream keeps its head until it is read."""
        if self._stream is None:
            self.head = self.head[:_HEAD]

    @property
    def can_be_cut(self) -> bool:
        """Whether an offset in the file is one in the bytes that readers see: it is neither packed nor transcoded."""
        reopens = self.root is not None or isinstance(self.name, StoreURL)
        return reopens and not self._packed and self._encoding is None

    def part(self, span: Span) -> DatasetFile:
        """Return the same file with another span."""
        other = copy.copy(self)
        other.span = span
        return other

    @contextmanager
    def opened_span(self) -> Iterator[BinaryIO]:
        """Open the bytes of the span, for the time of a ``with`` block; see ``opened``."""
        with self.opened() as stream:
            start, end = self.span[:2]
            yield part_of(stream, start, end) if start or end is not None else stream

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Open the file at its beginning, for the time of a ``with`` block.

        Raises:
            DatasetError: the file cannot be opened or read, or is a stream that was read before.
        """
        try:
            with self._open() as stream:
                if not self._packed and self._encoding is None:
                    yield stream
                    return
                with decompressed(stream, self._packed) as plain, transcoded(plain, self._encoding) as text:
                    yield text
        except (OSError, EOFError, zlib.error) as error:
            if damage := kind_of_damage(error, self._packed):
                what = f"a {damage} file that is cut off" if isinstance(error, EOFError) else f"a damaged {damage} file"
                raise DatasetError(f"{shown(self.name)} is {what}", "write it again") from None
            if not isinstance(error, OSError):
                raise
            raise _unreadable(self.name, error) from None

    def _open(self) -> BinaryIO:
        if isinstance(self.name, StoreURL):
            return io.BufferedReader(cast("io.RawIOBase", opened_object(self.name)), _BUFFER)
        if self._stream is None:
            return opened_input(self.name, buffering=_BUFFER, opener=self._opener)
        if self._spent:
            raise DatasetError(f"{shown(self.name)} can be read only once", "save it to a file to read it again")
        self._spent = True
        head, self.head = self.head, self.head[:_HEAD]
        rest = iter(partial(self._stream.read1, _BUFFER), b"")  # type: ignore[attr-defined]  # a buffered reader
        return stream_of(chain((head,), rest), None if self._stream is sys.stdin.buffer else self._stream.close)


def line_count(path: str) -> int | None:
    """Return how many lines a file of text has; None for a stream, a compressed or a large file."""
    if path.endswith((".gz", ".zst")) or not os.path.isfile(path) or os.path.getsize(path) > _COUNTED:
        return None
    lines, last = 0, b"\n"
    with open(path, "rb", buffering=0) as file:
        while block := file.read(_BUFFER):
            lines += block.count(b"\n")
            last = block[-1:]
    return lines + (last != b"\n")


def _head_of(stream: BinaryIO, enough: int) -> bytes:
    """Read whole lines until one is not blank and there are ``enough`` bytes; very long lines are cut."""
    head = bytearray()  # not a list of lines: many blank lines would take thirty times their bytes
    filled = False
    while not filled or len(head) < enough:
        line = stream.readline(_HEAD)
        if line[:1] == b"{" or line[:4] == b"\xef\xbb\xbf{":
            line += stream.readline(_LONGEST) if not line.endswith(b"\n") else b""
        head += line
        filled = filled or not line.isspace()
        if not line or len(head) > _LONGEST:
            break
    return bytes(head)


def _unreadable(name: str, error: OSError | ValueError) -> DatasetError:
    if isinstance(error, FileNotFoundError):
        return DatasetError(f"no such file: {shown(name)}", path_hint(name))
    if isinstance(error, IsADirectoryError) or os.path.isdir(name):
        return DatasetError(f"{shown(name)} is a directory", "name a dataset file in it")
    reason = error.strerror if isinstance(error, OSError) else "not a file name"
    return DatasetError(f"cannot read {shown(name)}: {reason}", "check the path and its permissions")


def path_hint(name: str) -> str:
    """Return what to do about a file that is not there: name the folder that is not there either, or a file alike."""
    folder, last = os.path.split(name)
    if "://" in name:
        return "download it, and give the file"
    if not os.path.isdir(folder or os.curdir):
        return f"check the path: there is no folder {shown(folder)}"
    import difflib  # noqa: PLC0415  # only for a fault

    try:
        with os.scandir(folder or os.curdir) as entries:
            names = [entry.name for entry in islice(entries, _COMPARED)]
    except OSError:
        names = []
    close = difflib.get_close_matches(last, names, n=1, cutoff=_ALIKE)
    return f"did you mean {shown(os.path.join(folder, close[0]))}?" if close else "check the path"
