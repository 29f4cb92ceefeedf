"""Passes mmprompt's warnings on to the logger of a runner that listens to no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging import WARNING, Handler, Logger, LogRecord
from threading import get_ident

from mmprompt._log import log

RunnerLogger = Callable[[], Logger]
"""Returns a runner's logger. It is called only when there is a warning."""


class _Relay(Handler):
    """Passes the warnings of the thread that made it on to a runner's logger."""

    def __init__(self, logger: RunnerLogger) -> None:
        super().__init__(WARNING)
        self._logger = logger
        self._thread = get_ident()

    def emit(self, record: LogRecord) -> None:
        """Log a warning with the runner's logger, if the runner has set up its log."""
        if get_ident() != self._thread:  # another thread's call has its own relay
            return
        logger = self._logger()
        if logger.hasHandlers():
            logger.warning("mmprompt: %s", record.getMessage())


@contextmanager
def warnings_to(logger: RunnerLogger) -> Iterator[None]:
    """Pass mmprompt's warnings on to a runner's logger, in a block or in a decorated function."""
    relay = _Relay(logger)
    log.addHandler(relay)
    try:
        yield
    finally:
        log.removeHandler(relay)
