"""The values of a task file's keys: texts, lists of names, ranges of rows."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Union

from mmprompt.errors import TaskError, shown

ConfigValue = Union[
    None, bool, int, float, str, type, "os.PathLike[str]", Sequence["ConfigValue"], Mapping[str, "ConfigValue"]
]
"""A value in a task: what YAML, TOML, JSON and Python files hold. Rows given in Python are not looked into."""

_RANGE = r"\[?\s*(\d*)\s*:\s*(\d*)\s*(?::\s*([1-9]\d*)\s*)?\]?"


def range_of(value: ConfigValue, place: str) -> slice:
    """Return a range of rows, given as a number of rows or as text: ``[10:20]``, ``[:100]``."""
    if value is None or value == "":
        return slice(None)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return slice(value)
    match = re.fullmatch(_RANGE, value) if isinstance(value, str) else None
    if match is None:
        raise TaskError(f"{place} is {shown(value)}", "give a number of rows, or a range such as '[0:100]'")
    return slice(*[int(number) if number else None for number in match.groups()])


def list_of(value: ConfigValue, place: str, noun: str) -> list[str]:
    """Return a list of names, which may be given as one name alone."""
    names = [value] if isinstance(value, (str, os.PathLike)) else value or ()
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, (str, os.PathLike)) for name in names):
        raise TaskError(f"{place} is not a list of {noun}s", f"give a {noun}, or a list of them")
    return [os.fspath(name) for name in names]


def text_of(value: ConfigValue, place: str, wanted: str = "the name of one column") -> str | None:
    """Return a text, or None if there is none. ``wanted`` says in an error what to give."""
    if value is None or isinstance(value, str):
        return value
    raise TaskError(f"{place} is {type(value).__name__}", f"give {wanted}")


def names_of(value: ConfigValue, place: str) -> tuple[str, ...]:
    """Return column names given as a list, or as one string with blanks between them."""
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(value.split())
    names = tuple(value) if isinstance(value, Iterable) else ()
    if not isinstance(value, Iterable) or not all(isinstance(name, str) for name in names):
        raise TaskError(f"{place} is not a list of column names", "give a list, or names separated by blanks")
    return tuple(map(str, names))
