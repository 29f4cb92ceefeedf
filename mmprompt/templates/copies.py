"""Copies of nested plain data, so that nothing of a caller's is shared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def copied(value: Any) -> Any:
    """Return ``value`` with its mappings and lists copied, all the way down; other objects are shared."""
    if isinstance(value, Mapping):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)([copied(item) for item in value])
    return value
