"""How many requests may be in flight: fewer while the server pushes back, one more a flight while it replies."""

from __future__ import annotations

_FALL = 0.8
"""What is left of the bound after a push-back."""


class Pace:
    """A bound on the calls in flight, and on those that begin in a minute. The caller keeps threads apart.

    The bound falls once a flight: a push-back counts only if its request began after the last fall. Each reply raises
    the bound a little, so that it grows by one in the time that a flight takes.

    Args:
        most: the highest bound, and the first.
        rpm: the most requests a minute; None for no bound.
    """

    def __init__(self, most: int, rpm: float | None = None) -> None:
        self.least = most
        self._most = most
        self._bound = float(most)
        self._begun = 0
        self._before_fall = 0
        self._gap = 60.0 / rpm if rpm else 0.0
        self._next = 0.0

    @property
    def bound(self) -> int:
        """How many calls may be in flight now."""
        return int(self._bound)

    def delay(self, now: float) -> float:
        """Return the seconds until the next request may begin."""
        return max(self._next - now, 0.0)

    def begin(self, now: float, count: int = 1) -> int:
        """Count a call of so many requests that begins now, and return its number."""
        self._next = max(self._next, now) + self._gap * count
        self._begun += 1
        return self._begun

    def fall(self, number: int) -> None:
        """Lower the bound: the call of this number met a server that has too much to do."""
        if number > self._before_fall:
            self._bound = max(self._bound * _FALL, 1.0)
            self._before_fall = self._begun
            self.least = min(self.least, self.bound)

    def rise(self) -> None:
        """Raise the bound a little: a call was answered."""
        self._bound = min(self._bound + 1.0 / self._bound, float(self._most))
