"""Values that JSON can hold: what may travel beside the text and media of a message."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mmprompt.errors import TargetError, shown

DEPTH = 100
"""How deep a value beside text and media may be nested; writers have limits of their own above this one."""


def plain(value: object, depth: int = DEPTH) -> object:
    """Return a copy of a JSON value made of dicts, lists, strings, numbers, booleans and None.

    Raises:
        TargetError: JSON cannot hold it (an infinite number, a key that is no string, another type), or it is nested
            deeper than ``depth``.
    """
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TargetError(f"a message cannot hold the number {value}", "JSON has finite numbers only")
        return value
    if not depth:
        raise TargetError(f"a message cannot hold a value nested over {DEPTH} levels", "flatten it")
    if isinstance(value, Mapping):
        return {_key(key): plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, depth - 1) for item in value]
    raise TargetError(f"a message cannot hold a value of type {type(value).__name__}", "give what JSON can hold")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise TargetError(f"the key {shown(key)} is no string", "JSON keys are strings")
    return key
