"""Objects that drop what must not be shared with a forked process: locks, pipes, child processes."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forgets(Protocol):
    """Holds things that belong to one process only."""

    def forget(self) -> None:
        """Drop what belongs to the parent. Called in the forked process before anything else runs there."""


_things: weakref.WeakSet[Forgets] = weakref.WeakSet()
_registered: list[bool] = []


def forget_after_fork(thing: Forgets) -> None:
    """Call ``thing.forget()`` in every process that is forked from this one while ``thing`` lives."""
    if not _registered and hasattr(os, "register_at_fork"):
        _registered.append(True)
        os.register_at_fork(after_in_child=_forget_all)
    _things.add(thing)


def _forget_all() -> None:
    for thing in list(_things):
        thing.forget()
