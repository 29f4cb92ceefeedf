"""Finds repeated ids in memory that does not grow with the number of rows."""

from __future__ import annotations

import json
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import pairwise
from types import TracebackType
from typing import IO, TYPE_CHECKING

from mmprompt.errors import RowError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

_BATCH = 1 << 12
_SPILL = 1 << 14  # a multiple of _BATCH
_SLOTS = 1 << 20
_SUSPECTS = 1 << 15
_PARTITION = 1 << 20
_INTEGERS = (1 << 61) - 1  # below this an int is its own hash
_ENTRY = 16


def _key(name: object) -> int:
    kind = type(name)
    if kind is str or (kind is int and 0 <= name < _INTEGERS):  # type: ignore[operator]  # an int
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
    of suspects are looked up in the end. If there are too many suspects, the whole file is sorted instead.
    """

    __slots__ = ("_file", "_hashes", "_lines", "_names", "_slots", "_spilled", "_suspects")

    def __init__(self) -> None:
        self._names: list[object] = []
        self._hashes = array("q")
        self._lines = array("q")
        self._slots = bytearray(_SLOTS)
        self._suspects: set[int] = set()
        self._file: IO[bytes] | None = None
        self._spilled = 0

    def add(self, name: object, line: int) -> None:
        """Remember an id and its line."""
        self._lines.append(line)
        names = self._names
        names.append(name)
        if len(names) >= _BATCH:
            self._hash()

    def _hash(self) -> None:
        """Replace the collected ids by their hashes; all at once costs a third of one by one."""
        names = self._names
        hashes = list(map(hash if set(map(type, names)) == {str} else _key, names))
        names.clear()
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
        self._hashes += array("q", hashes)  # in half the time of extend
        while len(self._hashes) >= _SPILL:
            self._spill()

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by close()
        self._file.seek(0, 2)
        self._file.write(self._hashes[:_SPILL].tobytes())
        self._file.write(self._lines[:_SPILL].tobytes())
        self._spilled += _SPILL
        self._hashes = self._hashes[_SPILL:]
        self._lines = self._lines[_SPILL:]

    def repeats(self) -> Iterator[tuple[int, int]]:
        """Yield the line of each repeated id, and the line where that id stood first.

        They come in the order of their lines for up to 2**20 ids; for more, in that order within several partitions.
        """
        self._hash()
        if len(self._suspects) >= _SUSPECTS and self._file is not None:
            yield from self._spilled_repeats(self._file)
            return
        first: dict[int, int] = {}
        for key, line in self._entries():
            if key not in self._suspects:
                continue
            if key in first:
                yield line, first[key]
            else:
                first[key] = line

    def _entries(self) -> Iterator[tuple[int, int]]:
        """Yield hash and line of all ids, in the order of ``add``."""
        for number in range(self._spilled // _SPILL):
            if self._file is None or not self._suspects:
                return
            self._file.seek(number * _SPILL * _ENTRY)
            block = array("q", self._file.read(_SPILL * _ENTRY))
            yield from zip(block[:_SPILL], block[_SPILL:], strict=True)
        yield from zip(self._hashes, self._lines, strict=True)

    def _spilled_repeats(self, file: IO[bytes]) -> Iterator[tuple[int, int]]:
        import numpy as np  # noqa: PLC0415  # only needed here

        total = self._spilled + len(self._lines)
        partitions = -(-total // _PARTITION)
        if partitions == 1:
            keys, lines = zip(*self._blocks(file), strict=True)
            yield from _repeats_among(np.concatenate(keys), np.concatenate(lines))
            return
        with tempfile.TemporaryFile() as sorted_file:
            bounds = self._distribute(file, sorted_file, partitions)
            for start, end in pairwise(bounds):
                sorted_file.seek(start * _ENTRY)
                pairs = np.frombuffer(sorted_file.read((end - start) * _ENTRY), dtype=np.int64).reshape(-1, 2)
                yield from _repeats_among(pairs[:, 0], pairs[:, 1])

    def _blocks(self, file: IO[bytes]) -> Iterator[tuple[Integers, Integers]]:
        """Yield hashes and lines in blocks, in the order of ``add``."""
        import numpy as np  # noqa: PLC0415  # only needed here

        for number in range(self._spilled // _SPILL):
            file.seek(number * _SPILL * _ENTRY)
            block = np.frombuffer(file.read(_SPILL * _ENTRY), dtype=np.int64)
            yield block[:_SPILL], block[_SPILL:]
        yield np.array(self._hashes, dtype=np.int64), np.array(self._lines, dtype=np.int64)

    def _distribute(self, file: IO[bytes], target: IO[bytes], partitions: int) -> list[int]:
        """Write all entries to ``target`` by partition; return where each partition begins, and the end."""
        import numpy as np  # noqa: PLC0415  # only needed here

        def part_of(keys: Integers) -> Integers:
            mixed = keys.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # integers in steps spread evenly too
            parts: Integers = ((mixed >> np.uint64(32)) % np.uint64(partitions)).astype(np.int64)
            return parts

        counts = np.zeros(partitions, dtype=np.int64)
        for keys, _ in self._blocks(file):
            counts += np.bincount(part_of(keys), minlength=partitions)
        bounds = [0, *np.cumsum(counts).tolist()]
        free = list(bounds)
        for keys, lines in self._blocks(file):
            parts = part_of(keys)
            order = np.argsort(parts, kind="stable")
            pairs = np.stack([keys, lines], axis=1)[order]
            at = 0
            for part, size in enumerate(np.bincount(parts, minlength=partitions).tolist()):
                target.seek(free[part] * _ENTRY)
                target.write(pairs[at : at + size].tobytes())
                free[part] += size
                at += size
        return bounds

    def close(self) -> None:
        """Forget everything and remove the temporary file."""
        self._names.clear()
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

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._names: list[object] = []
        self._places = array("q")

    def add(self, name: object, place: int) -> None:
        """Write an id and its place."""
        self._names.append(name)
        self._places.append(place)
        if len(self._names) >= _BATCH:
            self._write()

    def _write(self) -> None:
        keys = array("q", map(_lasting_key, self._names))
        for written in (array("q", [len(keys)]), keys, self._places):
            self._file.write(written.tobytes())
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
    """Yield the keys and the places of the ids in the file of an ``IdFile``, in batches."""
    while head := file.read(8):
        (size,) = array("q", head)
        yield array("q", file.read(8 * size)), array("q", file.read(8 * size))


def _lasting_key(name: object) -> int:
    """Return a key of an id that does not depend on the process."""
    if type(name) is int and 0 <= name < _INTEGERS:
        return name
    kind = b"" if type(name) is str else type(name).__name__.encode()[:16]
    text = name if type(name) is str else json.dumps(name, default=repr)
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, person=kind).digest()
    return int.from_bytes(digest, "little", signed=True)


def _repeats_among(keys: Integers, lines: Integers) -> Iterator[tuple[int, int]]:
    import numpy as np  # noqa: PLC0415  # only needed here

    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    starts = np.concatenate([[True], sorted_keys[1:] != sorted_keys[:-1]])
    first_of = order[np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))]
    again = np.flatnonzero(~starts)
    by_line = np.argsort(order[again], kind="stable")
    found = np.stack([lines[order[again][by_line]], lines[first_of[again][by_line]]], axis=1)
    yield from map(tuple, found.tolist())
