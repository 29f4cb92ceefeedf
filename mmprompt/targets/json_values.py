"""JSON values: what may stand in a request beside the text and media of a message."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Union

from mmprompt.errors import TargetError, shown

JSONValue = Union[None, bool, int, float, str, list["JSONValue"], dict[str, "JSONValue"]]
"""A value that JSON can hold."""

JSONObject = dict[str, JSONValue]

MAX_DEPTH = 100
"""How deep such a value may be nested. The JSON writers accept more than this."""


def plain(value: object, depth: int = MAX_DEPTH) -> JSONValue:
    """Return a copy of a JSON value, made of dicts, lists, strings, numbers, booleans and None.

    Raises:
        TargetError: JSON cannot hold it (an infinite number, a key that is not a string, another type), or it is nested
            deeper than ``depth``.
    """
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TargetError(
                f"a message cannot hold the number {value}", "replace it by a finite number", code="MM018"
            )
        return value
    if not depth:
        raise TargetError(f"a message cannot hold a value nested over {MAX_DEPTH} levels", "flatten it", code="MM011")
    if isinstance(value, Mapping):
        return {_key(key): plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, depth - 1) for item in value]
    kind = type(value).__name__
    raise TargetError(
        f"a message cannot hold a value of type {kind}", "give text, numbers, lists or mappings", code="MM007"
    )


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise TargetError(f"the key {shown(key)} is {type(key).__name__}", "write it as a string", code="MM007")
    return key
