"""One object for each thread and process, such as a session with open connections, which neither may share."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class PerThread(Generic[_T]):
    """Makes an object when a thread first asks for it. A forked process makes its own."""

    __slots__ = ("_all", "_close", "_local", "_make")

    def __init__(self, make: Callable[[], _T], close: Callable[[_T], object]) -> None:
        self._make = make
        self._close = close
        self._local = threading.local()
        self._all: weakref.WeakSet[_T] = weakref.WeakSet()

    def get(self) -> _T:
        """Return this thread's object, made in this process."""
        local = self._local
        if getattr(local, "process", None) != os.getpid():
            local.made, local.process = self._make(), os.getpid()
            self._all.add(local.made)
        made: _T = local.made
        return made

    def close(self) -> None:
        """Close the objects of all threads; each thread makes another when it asks again."""
        self._local = threading.local()
        for made in list(self._all):
            self._close(made)
