"""A bound on the memory of one piece of work in a child process, below the limit of the process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

INSIDE = "MMPROMPT_DECODER_PROCESS"
"""The environment variable that a child process has."""


@contextmanager
def at_most_more(size: int) -> Iterator[None]:
    """Let a child take at most ``size`` bytes more in the block. In other processes, and on macOS, do nothing."""
    if INSIDE not in os.environ or not sys.platform.startswith("linux"):
        yield
        return
    import resource  # noqa: PLC0415  # POSIX only

    before = resource.getrlimit(resource.RLIMIT_DATA)
    with open("/proc/self/statm", "rb") as file:
        taken = int(file.read().split()[5]) * resource.getpagesize()
    most = taken + size if before[0] == resource.RLIM_INFINITY else min(before[0], taken + size)
    resource.setrlimit(resource.RLIMIT_DATA, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
