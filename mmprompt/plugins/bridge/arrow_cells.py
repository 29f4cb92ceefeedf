"""Columns of any values for Arrow, where a column has one type: values that it would change go as JSON text."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mmprompt.plugins.bridge.table_rows import Table


def arrow_table(table: Table) -> Table:
    """Return the columns with values that Arrow gives back as they are.

    Lists, dicts and numbers of one type stay. In a column of several types, each value that is not text becomes JSON.
    """
    return {name: values if _is_kept(values) else list(map(_text, values)) for name, values in table.items()}


def _is_kept(values: Sequence[object]) -> bool:
    import pyarrow as pa  # noqa: PLC0415  # heavy

    try:
        kept = pa.array(values).to_pylist()
    except (pa.ArrowException, OverflowError):
        return False
    return json.dumps(kept, sort_keys=True) == json.dumps(values, sort_keys=True)


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
