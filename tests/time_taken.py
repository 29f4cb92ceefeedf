"""What work takes, measured so that a loaded machine is no fault: load only ever adds, so the least of some tries counts."""

from __future__ import annotations

import time
from collections.abc import Callable

TRIES = 5
GENEROUS = 20.0
"""Seconds to wait for what comes in a moment; only a machine that stands still, or a fault, takes so long."""


def processor_seconds(work: Callable[[], object], enough: float = 0.0, tries: int = TRIES) -> float:
    """Return the least processor time that this process takes for ``work``; a try below ``enough`` is the last."""
    return _least(work, enough, tries, time.process_time)


def elapsed_seconds(work: Callable[[], object], enough: float = 0.0, tries: int = TRIES) -> float:
    """Return the least time that passes during ``work``, for waits; a try below ``enough`` is the last."""
    return _least(work, enough, tries, time.monotonic)


def _least(work: Callable[[], object], enough: float, tries: int, clock: Callable[[], float]) -> float:
    least = float("inf")
    for _ in range(tries):
        begun = clock()
        work()
        least = min(least, clock() - begun)
        if least < enough:
            break
    return least


def wait_until(condition: Callable[[], object], seconds: float = GENEROUS) -> bool:
    """Tell whether ``condition`` comes to hold, looked at again and again for so long."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True
