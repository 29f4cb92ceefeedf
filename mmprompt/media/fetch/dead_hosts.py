"""Hosts that could not be connected to, remembered for a while: a dataset may name one in each of its rows."""

from __future__ import annotations

import time

from mmprompt.errors import SourceError, shown

_SECONDS, _MOST = 60.0, 1024
"""How long a host is remembered, and how many hosts are."""


class DeadHosts:
    """Hosts and ports that did not answer. Safe to share between threads, and across a fork: it has no lock."""

    __slots__ = ("_since",)

    def __init__(self) -> None:
        self._since: dict[tuple[str, int], float] = {}

    def check(self, target: tuple[str, int]) -> None:
        """Refuse a host and port that did not answer a short while ago.

        Raises:
            SourceError: it did not answer less than a minute ago.
        """
        since = time.monotonic() - self._since.get(target, -_SECONDS)
        if since < _SECONDS:
            host = shown(f"{target[0]}:{target[1]}", 60)
            raise SourceError(
                f"host {host} could not be connected to {since:.0f} s ago",
                f"check the URL, and the network; it is tried again after {_SECONDS:.0f} s",
            )

    def add(self, target: tuple[str, int]) -> None:
        """Remember a host and port; the oldest is forgotten where there are too many."""
        kept = [item for item in self._since.items() if item[0] != target][1 - _MOST :]
        self._since = {**dict(kept), target: time.monotonic()}
