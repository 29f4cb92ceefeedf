"""The log of a runner that listens to no logger but its own: what mmprompt warns of in its calls is told there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging import WARNING, Handler, LogRecord
from threading import get_ident
from typing import Any

from mmprompt._log import log

RunnerLogger = Callable[[], Any]
"""Gives a runner's logger, and is asked only when there is something to tell."""


class _Told(Handler):
    """Hands on to a runner's logger what the thread that made this is warned of."""

    def __init__(self, logger: RunnerLogger) -> None:
        super().__init__(WARNING)
        self._logger = logger
        self._thread = get_ident()

    def emit(self, record: LogRecord) -> None:
        """Tell a warning as the runner tells its own; nothing where it does not run, and so has no log."""
        if get_ident() != self._thread:  # that of a call beside this one, which tells it itself
            return
        logger = self._logger()
        if logger.hasHandlers():
            logger.warning("mmprompt: %s", record.getMessage())


@contextmanager
def told_in(logger: RunnerLogger) -> Iterator[None]:
    """Have the runner's logger tell what mmprompt warns of until the block, or the function so decorated, ends."""
    told = _Told(logger)
    log.addHandler(told)
    try:
        yield
    finally:
        log.removeHandler(told)
