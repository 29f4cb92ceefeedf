"""What must not be shared with a forked process is dropped there: locks that another thread held, pipes, children."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forgets(Protocol):
    """Has things of one process only."""

    def forget(self) -> None:
        """Drop what belongs to the parent process; called in the forked one before anything else runs there."""


_things: weakref.WeakSet[Forgets] = weakref.WeakSet()
_registered: list[bool] = []


def forget_after_fork(thing: Forgets) -> None:
    """Have ``thing.forget()`` called in every process that is forked from this one, for as long as ``thing`` lives."""
    if not _registered and hasattr(os, "register_at_fork"):
        _registered.append(True)
        os.register_at_fork(after_in_child=_forget_all)
    _things.add(thing)


def _forget_all() -> None:
    for thing in list(_things):
        thing.forget()
