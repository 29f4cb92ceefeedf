"""Rows that are checked together, which saves them a message each to the decoding process."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

from mmprompt.datasets.sample import Row
from mmprompt.render.media import sample_bytes

_MOST_BYTES = 4 << 20
"""Bytes after which no row joins others."""

_LATE = 0.05
"""Seconds after which a row comes late."""


def batches_of(rows: Iterator[tuple[Row, int | None]], most: int) -> Iterator[list[tuple[Row, int | None]]]:
    """Yield rows with their numbers together: the first alone, so that its findings come soon, then more and more.

    A row that came late, as from a slow pipe, waits for no other.
    """
    batch: list[tuple[Row, int | None]] = []
    count, size, asked = 1, 0, monotonic()
    for numbered in rows:
        batch.append(numbered)
        size += sample_bytes(numbered[0]) if count > 1 else 0
        late = monotonic() - asked > _LATE
        if late or len(batch) >= count or size >= _MOST_BYTES:
            count = 1 if late else min(2 * count, most)
            yield batch
            batch, size = [], 0
        asked = monotonic()
    if batch:
        yield batch
