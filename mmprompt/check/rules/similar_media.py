"""Rules on media that come again in a dataset: the same bytes under another name, and pictures that look the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from mmprompt.check.rule import Hit, dataset_rule
from mmprompt.check.rules.columns import place_of_row
from mmprompt.check.store import Store
from mmprompt.errors import SourceError
from mmprompt.media.sources import classify_or_path
from mmprompt.media.urls import file_path

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[tuple[int, ...], np.dtype[Any]]

DISTANCE = 6
"""Bits of 64 in which the difference hashes of similar pictures may differ. The page of MM709 has the measurements."""

ALIKE = 0.97
"""The least correlation of the grey levels of similar pictures. Hashes alone take charts of one layout for similar."""

_STEP, _STEPS = 3, 20
"""A step between neighbouring levels of fewer than 3 of 255 may be noise. A picture with fewer than 20 real steps, of
64, is flat: its hash says little."""

_BANDS = DISTANCE + 1
"""Hashes that differ in DISTANCE bits are equal in one of so many bands."""

_TRIED = 8
"""Pictures of one hash, after the first, with which a later picture is compared."""

_ROWS = 1 << 13
"""Pictures that are held at once."""

_CELLS = 1 << 22
"""Distances that are held at once."""


@dataset_rule("MM708")
def repeated_media(store: Store) -> Iterator[Hit]:
    """The same bytes under two names."""
    again = store.query(
        "SELECT MIN(later.rowid), later.row, later.name, later.column_name, later.offset, first.name, first.row"
        " FROM (SELECT MIN(rowid) AS number, digest FROM media WHERE digest != x'' GROUP BY digest"
        " HAVING COUNT(DISTINCT name) > 1) AS twin JOIN media AS first ON first.rowid = twin.number"
        " JOIN media AS later ON later.digest = twin.digest AND later.name != first.name"
        " GROUP BY later.digest, later.name ORDER BY 1"
    )
    for _, row, name, column, offset, first, first_row in again:
        if _file_of(name) == _file_of(first):
            continue
        what = f"{name} has the same bytes as {first} {_place(store, first_row, row)}"
        yield Hit(what, "drop one of the two, or name one file in both places", column, offset, row)


@dataset_rule("MM709")
def similar_media(store: Store) -> Iterator[Hit]:
    """Two pictures that look the same: one is often the other, saved again or scaled."""
    if next(store.query("SELECT COUNT(cells) FROM media"))[0] < 2:
        return
    numbers, hashes = _hashes(store)
    for later, near in _neighbours(hashes):
        row, name, column, offset, cells = _medium(store, numbers[later])
        for earlier, distance in near:
            old = _medium(store, numbers[earlier])
            if _correlation(cells, old[-1]) >= ALIKE:
                what = f"{name} looks like {old[1]} {_place(store, old[0], row)} (distance {distance} of 64)"
                yield Hit(what, "look at both, and drop one if they show the same", column, offset, row)
                break


def _file_of(name: str) -> str:
    """Return the path that a name says; a name of another kind is returned as it is."""
    if classify_or_path(name) == "file":
        try:
            name = file_path(name)
        except SourceError:  # cut short for messages
            return name
    return os.path.normpath(name)


def _place(store: Store, first: int, row: int) -> str:
    known, own = store.sample(first), store.sample(row)
    if first == row or known is None or own is None:
        return "in the same row"
    if known.file == own.file and known.line is not None:
        return f"in line {known.line}"
    return f"in {place_of_row(known.file, known.line, first)}"


def _medium(store: Store, number: int) -> tuple[int, str, str | None, int | None, bytes]:
    found = store.query("SELECT row, name, column_name, offset, cells FROM media WHERE rowid = ?", number)
    kept: tuple[int, str, str | None, int | None, bytes] = next(found)
    return kept


def _hashes(store: Store) -> tuple[list[int], Array]:
    """Return where different pictures stand first, and their difference hashes. Flat ones are left out.

    A bit of a hash says that an area of the picture is darker than its right neighbour.
    """
    import numpy as np  # noqa: PLC0415  # heavy

    found = store.query("SELECT MIN(rowid), cells FROM media WHERE cells IS NOT NULL GROUP BY digest ORDER BY 1")
    numbers: list[int] = []
    parts = [np.empty(0, np.uint64)]
    while some := list(islice(found, _ROWS)):
        levels = np.frombuffer(b"".join([cells for _, cells in some]), np.uint8).reshape(len(some), 8, 9)
        steps = np.diff(levels.astype(np.int16), axis=2).reshape(len(some), 64)
        keep = (np.abs(steps) >= _STEP).sum(axis=1) >= _STEPS
        parts.append(np.packbits(steps[keep] > 0, axis=1).view(np.uint64)[:, 0])
        numbers += [number for (number, _), kept in zip(some, keep.tolist(), strict=True) if kept]
    return numbers, np.concatenate(parts)


def _neighbours(hashes: Array) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Yield each picture that is near an earlier one, with some of these and their distances.

    They are the first pictures of its own hash, and of the nearest earlier hash.
    """
    import numpy as np  # noqa: PLC0415  # heavy

    none = len(hashes)
    unique, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    order = np.argsort(first)  # earlier ones come first
    nearest, far = np.full(len(unique), none), np.full(len(unique), DISTANCE + 1)
    for band in range(_BANDS):
        _search(unique[order], band, nearest, far)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    more: dict[int, list[int]] = {}
    for later in range(len(hashes)):
        at = int(place[which[later]])
        near: list[tuple[int, int]] = []
        if int(first[order[at]]) != later:
            near += [(earlier, 0) for earlier in (int(first[order[at]]), *more.get(at, ()))]
            if len(more.setdefault(at, [])) < _TRIED:
                more[at].append(later)
        if far[at] <= DISTANCE:
            other = int(nearest[at])
            near += [(earlier, int(far[at])) for earlier in (int(first[order[other]]), *more.get(other, ()))]
        if near:
            yield later, near


def _search(hashes: Array, band: int, nearest: Array, far: Array) -> None:
    """Look for nearer earlier hashes among those that are equal in a band; keep them and their distances.

    Every seventh bit is of one band, so that a band is not one area of the pictures.
    """
    import numpy as np  # noqa: PLC0415  # heavy

    mask = np.uint64(sum(1 << bit for bit in range(band, 64, _BANDS)))
    keys = hashes & mask
    by_key = np.argsort(keys, kind="stable")
    ends = np.flatnonzero(np.diff(keys[by_key])) + 1
    for group in np.split(by_key, ends):
        height = max(1, _CELLS // max(1, len(group)))
        for start in range(1, len(group), height):  # the first of a group has none before it
            rows = group[start : start + height]
            distances = _distances(hashes[rows, None], hashes[None, group[: start + len(rows) - 1]])
            distances[np.arange(start, start + len(rows))[:, None] <= np.arange(distances.shape[1])] = 65
            best = distances.argmin(axis=1)
            found = distances[np.arange(len(rows)), best]
            nearer = found < far[rows]
            nearest[rows[nearer]], far[rows[nearer]] = group[best[nearer]], found[nearer]


def _distances(some: Array, others: Array) -> Array:
    """Return in how many bits hashes differ."""
    import numpy as np  # noqa: PLC0415  # heavy

    differ: Array = some ^ others
    if hasattr(np, "bitwise_count"):  # NumPy 2
        return cast("Array", np.bitwise_count(differ))
    table = np.array([number.bit_count() for number in range(1 << 16)], np.uint8)
    counted: Array = table[differ[..., None].view(np.uint16)].sum(axis=-1, dtype=np.uint8)
    return counted


def _correlation(one: bytes, other: bytes) -> float:
    """Return the correlation of two series of grey levels, -1 to 1: light and contrast do not count."""
    import numpy as np  # noqa: PLC0415  # heavy

    levels = np.frombuffer(one + other, np.uint8).reshape(2, -1)
    return float(np.asarray(np.corrcoef(levels))[0, 1])
