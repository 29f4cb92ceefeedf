"""A sample as one text column, for runners whose tables give each column one type and each hole a null."""

from __future__ import annotations

import json
from collections.abc import Mapping

from mmprompt.datasets.sample import Sample
from mmprompt.errors import RowError

CARRIED = "mmprompt"
"""The column that holds the sample."""


def carry(sample: Sample, *, list_cells: bool = False) -> str:
    """Return a sample as JSON text; ``list_cells`` says that its format writes lists as text (CSV)."""
    kept = {
        "row": sample.row,
        "columns": sample.columns,
        "scanned": sample.scanned,
        "list_cells": list_cells,
        "chat": sample.messages is not None,
    }
    return json.dumps(kept)


def carried(row: Mapping[str, object]) -> Mapping[str, object] | None:
    """Return what a row of a runner's table carries: ``row``, ``columns``, ``scanned``, ``list_cells``, ``chat``.

    None where it carries nothing: the row of another dataset.

    Raises:
        RowError: the column holds something else.
    """
    text = row.get(CARRIED)
    if text is None:
        return None
    try:
        kept = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        kept = None
    if not isinstance(kept, dict) or not {"row", "columns", "scanned", "list_cells", "chat"} <= set(kept):
        raise RowError(f"the column '{CARRIED}' holds no sample", f"give the column '{CARRIED}' another name")
    return kept


def answers(samples: list[Sample], column: str) -> list[object]:
    """Return the answers of samples in one type: as they are where all are texts, else as JSON text; None for none."""
    found = [sample.columns.get(column) for sample in samples]
    if all(answer is None or isinstance(answer, str) for answer in found):
        return found
    return [None if answer is None else json.dumps(answer, ensure_ascii=False) for answer in found]
