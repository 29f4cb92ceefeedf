"""Finds repeated ids in memory that does not grow with the number of rows."""

from __future__ import annotations

import json
import os
import sys
from array import array
from collections.abc import Iterator, Sequence
from struct import pack
from types import TracebackType
from typing import IO

from mmprompt.errors import RowError, TaskError, shown
from mmprompt.targets.chunk_writer import ChunkWriter

Entry = tuple[int, int]

_BATCH = 1 << 12
_HEAD = 8
_SPILL = 1 << 14  # a multiple of _BATCH
_SLOTS = 1 << 20
_SUSPECTS = 1 << 15
_PARTITION = 1 << 15
_WAITING = 1 << 16
_LEAST = 32
_INTEGERS = (1 << 61) - 1  # below this an int is its own hash
_INTEGER = 8
_ENTRY = 2 * _INTEGER


def _key(name: object) -> int:
    kind = type(name)
    if kind is str or (kind is int and 0 < name < _INTEGERS):  # type: ignore[operator]  # an int; "" hashes as 0 does
        return hash(name)
    return hash((kind.__name__, json.dumps(name, default=repr)))


class RepeatedIdError(RowError):
    """Another row has the same id. The row goes out all the same."""


class RepeatedIds:
    """Stores ids as 64-bit hashes, in a temporary file once there are many.

    Call ``add`` with each id and its line, or another integer for its place, then ``repeats`` once or more. Ids of
    different JSON type (1, "1", true, 1.0) are different; lists and objects compare by their JSON text. Use it as a
    context manager, or call ``close``.

    A table of ``_SLOTS`` bytes tells most ids apart at once. A hash whose slot is in use is a suspect; only the lines
    of suspects are looked up in the end. If there are too many suspects, all ids are looked up, part by part.
    """

    __slots__ = ("_file", "_hashes", "_lines", "_names", "_slots", "_spilled", "_suspects", "_waiting")

    def __init__(self) -> None:
        self._names: list[object] = []
        self._waiting: list[int] = []
        self._hashes = array("q")
        self._lines = array("q")
        self._slots = bytearray(_SLOTS)
        self._suspects: set[int] = set()
        self._file: IO[bytes] | None = None
        self._spilled = 0

    def add(self, name: object, line: int) -> None:
        """Remember an id and its line."""
        self.add_all([name], [line])

    def add_all(self, names: Sequence[object], lines: Sequence[int]) -> None:
        """Remember ids and their lines."""
        self._names += names
        self._waiting += lines
        if len(self._names) >= _BATCH:
            self._hash()

    def _hash(self) -> None:
        """Replace the collected ids by their hashes; all at once costs a third of one by one."""
        names, lines = self._names, self._waiting
        hashes = list(map(hash if set(map(type, names)) == {str} else _key, names))
        self._lines.frombytes(pack(f"{len(lines)}q", *lines))
        names.clear()
        lines.clear()
        self._keep(hashes)

    def add_keys(self, keys: Sequence[int], lines: Sequence[int]) -> None:
        """Remember ids by the keys that an ``IdFile`` holds; not together with ``add``."""
        self._lines.extend(lines)
        self._keep(keys)

    def _keep(self, hashes: Sequence[int]) -> None:
        slots, suspects = self._slots, self._suspects
        for key in hashes if len(suspects) < _SUSPECTS else ():
            slot = key & (_SLOTS - 1)
            if slots[slot]:
                suspects.add(key)
            else:
                slots[slot] = 1
        self._hashes.frombytes(pack(f"{len(hashes)}q", *hashes))  # in a third of the time of extend
        while len(self._hashes) >= _SPILL:
            self._spill()

    def _spill(self) -> None:
        if self._file is None:
            import tempfile  # noqa: PLC0415  # only for many rows

            self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by close()
        self._file.seek(0, 2)
        self._file.write(self._hashes[:_SPILL].tobytes())
        self._file.write(self._lines[:_SPILL].tobytes())
        self._spilled += _SPILL
        self._hashes = self._hashes[_SPILL:]
        self._lines = self._lines[_SPILL:]

    def repeats(self) -> Iterator[Entry]:
        """Yield the line of each repeated id, and the line where that id stood first.

        They come in the order of their lines.
        """
        self._hash()
        if len(self._suspects) >= _SUSPECTS:
            yield from _repeats_of_many(self._entries(), self._spilled + len(self._lines))
            return
        if not self._suspects:
            return
        first: dict[int, int] = {}
        for key, line in self._entries():
            if key not in self._suspects:
                continue
            if key in first:
                yield line, first[key]
            else:
                first[key] = line

    def _entries(self) -> Iterator[Entry]:
        """Yield hash and line of all ids, in the order of ``add``."""
        for number in range(self._spilled // _SPILL):
            if self._file is None:
                return
            self._file.seek(number * _SPILL * _ENTRY)
            block = array("q", self._file.read(_SPILL * _ENTRY))
            yield from zip(block[:_SPILL], block[_SPILL:], strict=True)
        yield from zip(self._hashes, self._lines, strict=True)

    def close(self) -> None:
        """Forget everything and remove the temporary file."""
        self._names.clear()
        self._waiting.clear()
        self._hashes = array("q")
        self._lines = array("q")
        self._slots = bytearray(_SLOTS)
        self._suspects = set()
        self._spilled = 0
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> RepeatedIds:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class IdFile:
    """Writes ids to a file, as keys that mean the same in every process, each with its place.

    ``keys_in`` reads the file. Use it as ``RepeatedIds``; it finds no repeated ids.
    """

    def __init__(self, writer: ChunkWriter) -> None:
        self._writer = writer
        self._names: list[object] = []
        self._places = array("q")

    def add(self, name: object, place: int) -> None:
        """Write an id and its place."""
        self.add_all([name], [place])

    def add_all(self, names: Sequence[object], places: Sequence[int]) -> None:
        """Write ids and their places."""
        self._names += names
        self._places.extend(places)
        if len(self._names) >= _BATCH:
            self._write()

    def _write(self) -> None:
        keys = array("q", map(_lasting_key, self._names))
        self._writer.write([each.tobytes() for each in (array("q", [len(keys)]), keys, self._places)])
        self._names.clear()
        self._places = array("q")

    def repeats(self) -> Iterator[tuple[int, int]]:
        """Yield nothing."""
        return iter(())

    def __enter__(self) -> IdFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._write()


def keys_in(file: IO[bytes]) -> Iterator[tuple[array[int], array[int]]]:
    """Yield the keys and the places of the ids in the file of an ``IdFile``, in batches.

    Raises:
        TaskError: the file holds something else.
    """
    left = os.fstat(file.fileno()).st_size
    while left >= _HEAD:
        size = int.from_bytes(file.read(_HEAD), sys.byteorder, signed=True)
        left -= _HEAD + 16 * size
        if size < 0 or left < 0:
            break
        yield array("q", file.read(8 * size)), array("q", file.read(8 * size))
    if left:
        raise TaskError(f"{shown(file.name)} does not hold ids", "remove the folder to begin anew")


def _lasting_key(name: object) -> int:
    """Return a key of an id that does not depend on the process."""
    if type(name) is int and 0 <= name < _INTEGERS:
        return name
    from hashlib import blake2b  # noqa: PLC0415  # only for shards

    kind = b"" if type(name) is str else type(name).__name__.encode()[:16]
    text = name if type(name) is str else json.dumps(name, default=repr)
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, person=kind).digest()
    return int.from_bytes(digest, "little", signed=True)


def _repeats_of_many(entries: Iterator[Entry], total: int) -> Iterator[Entry]:
    """Yield the repeats of ``repeats`` with one part of the ids in memory at a time."""
    import tempfile  # noqa: PLC0415  # only for many rows
    from heapq import merge  # noqa: PLC0415  # only for many rows

    parts = -(-total // _PARTITION)
    with tempfile.TemporaryFile() as distributed, tempfile.TemporaryFile() as found:
        waiting = max(_LEAST, _WAITING // parts)
        by_part = [_ChunkedEntries(distributed, waiting) for _ in range(parts)]
        for entry in entries:
            by_part[hash((entry[0],)) % parts].add(entry)  # mixed: ids may be integers in steps
        repeats = []
        for part in by_part:
            of_part = _ChunkedEntries(found, waiting)
            first: dict[int, int] = {}
            for key, line in part:
                if key in first:
                    of_part.add((line, first[key]))
                else:
                    first[key] = line
            repeats.append(of_part)
        yield from merge(*repeats)


class _ChunkedEntries:
    """Pairs of integers in chunks of a file, which it shares with others. Those of the last chunk stay in memory."""

    __slots__ = ("_file", "_most", "_starts", "_waiting")

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file = file
        self._most = 2 * most
        self._starts: list[int] = []
        self._waiting: list[int] = []

    def add(self, entry: Entry) -> None:
        waiting = self._waiting
        waiting += entry
        if len(waiting) >= self._most:
            self._starts.append(self._file.seek(0, 2))
            self._file.write(array("q", waiting).tobytes())
            waiting.clear()

    def __iter__(self) -> Iterator[Entry]:
        for start in self._starts:
            self._file.seek(start)
            block = array("q", self._file.read(self._most * _INTEGER))
            yield from zip(block[::2], block[1::2], strict=True)
        yield from zip(self._waiting[::2], self._waiting[1::2], strict=True)
