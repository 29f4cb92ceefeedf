"""Lists in a column: real ones, and those that a CSV or TSV cell can only write as text."""

from __future__ import annotations

import ast
import json
import re

from mmprompt.media.audio.facts import is_sound_pair

LONGEST_LITERAL = 1 << 19
"""Characters of a Python list, long runs of base64 not counted: to read it takes 500 times its bytes of memory."""

_RUN = re.compile(r"[A-Za-z0-9+/=]{1024,}")
_MARK = re.compile("\ue000([0-9]+)\ue000")
"""What stands for a run; outside a string it is a syntax error."""


def list_of_cell(value: object, *, cells: bool = False) -> list[object]:
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
    for read in (json.loads, _literal):
        try:
            found = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(found, list):
            return found
    return [value]


def _literal(text: str) -> object:
    """Return what ``text`` is as a Python literal.

    Raises:
        ValueError: it is none, or too long.
        SyntaxError: it is none.
        RecursionError: it is nested too deeply.
        MemoryError: likewise.
    """
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
    """Return a literal with the runs at their places again."""
    if isinstance(value, str):
        return _MARK.sub(lambda mark: runs[int(mark[1])], value)
    if isinstance(value, (list, tuple, set)):
        return type(value)([_with_runs(item, runs) for item in value])
    if isinstance(value, dict):
        return {_with_runs(key, runs): _with_runs(item, runs) for key, item in value.items()}
    return value
