"""Lists in a column: real ones, and those that a CSV or TSV cell can only write as text."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence


def listed(value: object, *, cells: bool = False) -> list[object]:
    """Return the elements of a list column, or the value itself as the only element.

    A pair of samples and their rate is one value. With ``cells`` a text that is a JSON or Python list of plain values
    is that list (never evaluated as code), and an empty cell is no element. Raises nothing: what is no list is a value.
    """
    if isinstance(value, (list, tuple)):
        return [value] if is_sound_pair(value) else list(value)
    if not cells or not isinstance(value, str):
        return [value]
    if not value.strip():
        return []
    text = value.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return [value]
    for read in (json.loads, ast.literal_eval):
        try:
            found = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(found, list):
            return found
    return [value]


def is_sound_pair(value: Sequence[object]) -> bool:
    """Tell whether a list is no list but sound: an array of samples, and their rate, which may be a scalar of NumPy."""
    if len(value) != 2 or not hasattr(value[0], "shape"):
        return False
    return isinstance(value[1], (int, float)) or getattr(value[1], "shape", None) == ()
