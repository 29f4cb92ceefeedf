"""Lists in a column: real ones, and lists that a CSV or TSV cell holds as text."""

from __future__ import annotations

import ast
import json
import re

from mmprompt.media.audio.facts import is_sound_pair
from mmprompt.messages import stands_in

LONGEST_LITERAL = 1 << 19
"""The most characters of a Python list, without long runs of base64: parsing takes 500 times its size in memory."""

_RUN = re.compile(r"[A-Za-z0-9+/=]{1024,}")
_MARK = re.compile("\ue000([0-9]+)\ue000")
"""The placeholder of a run; outside a string literal it is a syntax error."""


def list_of_cell(value: object, *, cells: bool = False) -> list[object]:
    """Return the elements of a list column, or the value itself as the only element.

    A pair (samples, rate) is one value. With ``cells``, a text that is a JSON or Python list of plain values is that
    list (it is never evaluated as code), and a blank cell is an empty list. Any other value is one element.
    """
    if isinstance(value, (list, tuple)):
        return [value] if is_sound_pair(value) else list(value)
    if not isinstance(value, str):
        return _elements(value)
    given: object = value
    if not cells or (stands_in(given) and given.asked(_is_one_text)):
        return [value]
    if not value.strip():
        return []
    text = value.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return [value]
    for read in (json.loads, _literal):
        try:
            found = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(found, list):
            return found
    return [value]


def _is_one_text(cell: str) -> bool:
    """Return whether a cell is a text that is neither blank nor a list."""
    text = cell.strip()
    return bool(text) and not (text.startswith("[") and text.endswith("]"))


def _elements(value: object) -> list[object]:
    """Return the elements of an array of objects or texts, which is how pandas holds lists."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind in {"O", "U", "T"} and getattr(value, "ndim", 0) == 1:
        return list(value.tolist())  # type: ignore[attr-defined]  # an array
    return [value]


def _literal(text: str) -> object:
    """Return the value of a Python literal."""
    runs: list[str] = []
    if len(text) > LONGEST_LITERAL and not _MARK.search(text):
        runs = _RUN.findall(text)
        numbers = iter(range(len(runs)))
        text = _RUN.sub(lambda _: f"\ue000{next(numbers)}\ue000", text)
    if len(text) > LONGEST_LITERAL:
        raise ValueError(len(text))
    found: object = ast.literal_eval(text)
    return _with_runs(found, runs) if runs else found


def _with_runs(value: object, runs: list[str]) -> object:
    """Return a literal with its runs of base64 put back."""
    if isinstance(value, str):
        return _MARK.sub(lambda mark: runs[int(mark[1])], value)
    if isinstance(value, (list, tuple, set)):
        return type(value)([_with_runs(item, runs) for item in value])
    if isinstance(value, dict):
        return {_with_runs(key, runs): _with_runs(item, runs) for key, item in value.items()}
    return value
