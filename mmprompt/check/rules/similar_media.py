"""Rules on media that come again in a dataset: the same bytes under another name, and pictures that look the same."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from operator import mul, sub
from typing import NamedTuple

from mmprompt.check.rule import Hit, dataset_rule
from mmprompt.check.rules.columns import FEW, place_of_row
from mmprompt.check.store import Store
from mmprompt.errors import SourceError
from mmprompt.media.sources import classify_or_path
from mmprompt.media.urls import file_path

DISTANCE = 6
"""Bits of 64 in which the difference hashes of similar pictures may differ. The page of MM709 has the measurements."""

ALIKE = 0.97
"""The least correlation of the grey levels of similar pictures. Hashes alone take charts of one layout for similar."""

SMALL, STRICTLY_ALIKE = 64, 0.99
"""Pixels of the shorter side below which a picture is small, and the least correlation if one of the two is. Of 1,797
digits 228 look like an earlier one with 0.97, and 8 with 0.99."""

FAR = 5
"""Bits from which on the least correlation is that of small pictures: pages of text of one layout differ little. Of 200
such pages 41 are told with 0.97, and 8 with 0.99."""

SAME_COLOURS = 0.93
"""The least correlation of the colour differences of similar pictures that both have colours."""

_NOISE, _COLOURLESS = 64, 4
"""Variances of colour differences: what is added, so that faint ones count little, and below which there is no colour.
The page of MM709 has the measurements."""

_STEP, _STEPS = 3, 20
"""A step between neighbouring levels of fewer than 3 of 255 may be noise. A picture with fewer than 20 real steps, of
64, is flat: its hash says little."""

_SEVERAL = 0.5
"""The share of pictures that look like an earlier one beyond which a dataset is a series, such as slices or frames."""

_BITS = 64
_BANDS = 4
_MASKS = tuple([sum(1 << bit for bit in range(band, _BITS, _BANDS)) for band in range(_BANDS)])
"""Every fourth bit is of one band, so that a band is not one area of the pictures.

Of hashes that differ in 6 bits one of the four bands differs in one bit at most."""

_PROBES = tuple([(0, *[1 << bit for bit in range(band, _BITS, _BANDS)]) for band in range(_BANDS)])
"""What a band may differ in."""

_TRIED = 8
"""Pictures of one hash, after the first, with which a later picture is compared."""

_COMPARED = 1000
"""Hashes of one band with which a hash is compared, the latest ones: time does not grow with the square of pictures."""

_COLUMNS = 9

_BIT = "0" + "1" * 255 + "0" * 255
_IS_STEP = [abs(step) >= _STEP for step in (*range(256), *range(-255, 0))]
"""By a difference of grey levels from -255 to 255, which are indexes from both ends: its bit, and whether it counts."""


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
        if (old := store.sample(first_row)) is None or (own := store.sample(row)) is None:
            continue
        where = _place(first_row, old.file, old.line, row, own.file)
        what = f"{name} has the same bytes as {first} {where}"
        yield Hit(what, "drop one of the two, or name one file in both places", column, offset, row)


@dataset_rule("MM709")
def similar_media(store: Store) -> Iterator[Hit]:
    """Two pictures that look the same: one is often the other, saved again or scaled; one finding if most are such.

    Those of one row are not compared: they are frames, or the row asks what differs.
    """
    found = list(_similar(store))
    different = next(store.query("SELECT COUNT(DISTINCT digest) FROM media WHERE cells IS NOT NULL"))[0]
    told_once = len(found) >= FEW and len(found) > _SEVERAL * different
    for number, earlier, distance in found:
        own, old = _medium(store, number), _medium(store, earlier)
        where = _place(old.row, old.file, old.line, own.row, None if told_once else own.file)
        what = f"{own.name} looks like {old.name} {where} (distance {distance} of {_BITS})"
        if told_once:
            count = f"{len(found)} of {different} different pictures look like an earlier one"
            yield Hit(f"{count}: {what}", "look at some, and drop copies; leave it if they are one series")
            return
        store.add_alike(own.row, own.column, own.offset, old.digest)
        yield Hit(what, "look at both, and drop one if they show the same", own.column, own.offset, own.row)


def _similar(store: Store) -> Iterator[tuple[int, int, int]]:
    """Yield each picture that looks like an earlier one of another row, with that one and their distance."""
    for number, near in _neighbours(_hashes(store)):
        own = _medium(store, number)
        for earlier, distance in near:
            old = _medium(store, earlier)
            is_strict = distance >= FAR or min(own.side, old.side) < SMALL
            least = STRICTLY_ALIKE if is_strict else ALIKE
            is_alike = old.row != own.row and _correlation(own.cells, old.cells) >= least
            if is_alike and _share_colours(own.cells, old.cells):
                yield number, earlier, distance
                break


def _file_of(name: str) -> str:
    """Return the path that a name says; a name of another kind is returned as it is."""
    if classify_or_path(name) == "file":
        try:
            name = file_path(name)
        except SourceError:  # cut short for messages
            return name
    return os.path.normpath(name)


def _place(first: int, file: str | None, line: int | None, row: int, own: str | None) -> str:
    """Return in words where the row ``first`` stands, for the row ``row`` of the file ``own``."""
    if first == row:
        return "in the same row"
    return f"in line {line}" if file == own and line is not None else f"in {place_of_row(file, line, first)}"


class _Medium(NamedTuple):
    row: int
    name: str
    column: str | None
    offset: int | None
    cells: bytes
    digest: bytes
    file: str | None
    line: int | None
    side: int


def _medium(store: Store, number: int) -> _Medium:
    sql = (
        "SELECT row, name, column_name, offset, cells, digest, file, line, MIN(width, height)"
        " FROM media JOIN samples USING (row) WHERE media.rowid = ?"
    )
    return _Medium(*next(store.query(sql, number)))


def _hashes(store: Store) -> Iterator[tuple[int, int]]:
    """Yield where different pictures stand first, and their difference hashes. Flat ones are left out.

    A bit of a hash says that an area of the picture is darker than its right neighbour.
    """
    for number, cells in store.query(
        "SELECT MIN(rowid), cells FROM media WHERE cells IS NOT NULL GROUP BY digest ORDER BY 1"
    ):
        levels = cells[::3]
        steps = [*map(sub, levels[1:], levels)]
        del steps[_COLUMNS - 1 :: _COLUMNS]  # from the end of a row to the next
        if sum(map(_IS_STEP.__getitem__, steps)) >= _STEPS:
            yield number, int("".join(map(_BIT.__getitem__, steps)), 2)


def _neighbours(hashes: Iterable[tuple[int, int]]) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Yield each picture that is near an earlier one, with some of these and their distances.

    They are the first pictures of its own hash, and of the nearest earlier hash.
    """
    pictures: dict[int, list[int]] = {}
    nearest: dict[int, tuple[int, int]] = {}
    bands: list[dict[int, list[int]]] = [{} for _ in _MASKS]
    for number, own in hashes:
        known = pictures.get(own)
        if known is None:
            pictures[own] = [number]
            distance, others = _nearest(own, bands)
            if distance <= DISTANCE:
                nearest[own] = min(others, key=lambda other: pictures[other][0]), distance
        near = [(earlier, 0) for earlier in known or ()]
        if own in nearest:
            other, distance = nearest[own]
            near += [(earlier, distance) for earlier in pictures[other] if earlier < number]
        if known is not None and len(known) <= _TRIED:
            known.append(number)
        if near:
            yield number, near


def _nearest(own: int, bands: Sequence[dict[int, list[int]]]) -> tuple[int, list[int]]:
    """Return the distance of the nearest earlier hashes, and these. Keep this hash for later ones."""
    near: list[int] = []
    for mask, probes, band in zip(_MASKS, _PROBES, bands, strict=True):
        key = own & mask
        for alike in filter(band.__contains__, map(key.__xor__, probes)):
            near += band[alike][-_COMPARED:]
        band.setdefault(key, []).append(own)
    distances = [(own ^ other).bit_count() for other in near]
    least = min(distances, default=_BITS)
    return least, [other for other, distance in zip(near, distances, strict=True) if distance == least]


def _correlation(one: bytes, other: bytes) -> float:
    """Return the correlation of the grey levels of two pictures, -1 to 1: light and contrast do not count."""
    own, others, both = _variances(one, other, 0)
    return both / math.sqrt(own * others) if own and others else 0.0


def _share_colours(one: bytes, other: bytes) -> bool:
    """Return whether two pictures have the same colours, or one has none. Tint and saturation do not count."""
    own, others, both = map(sum, zip(*[_variances(one, other, band) for band in (1, 2)], strict=True))
    if min(own, others) < _COLOURLESS:
        return True
    return both + _NOISE >= SAME_COLOURS * math.sqrt((own + _NOISE) * (others + _NOISE))


def _variances(one: bytes, other: bytes, band: int) -> list[float]:
    """Return the variance of a band in each of two pictures, and its covariance in both."""
    own, others = one[band::3], other[band::3]
    count = len(own)
    return [
        (count * sum(map(mul, a, b)) - sum(a) * sum(b)) / count**2
        for a, b in ((own, own), (others, others), (own, others))
    ]
