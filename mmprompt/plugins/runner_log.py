"""The log of a runner that listens to no logger but its own: what mmprompt warns of is told there too."""

from __future__ import annotations

from collections.abc import Callable
from logging import WARNING, Handler, LogRecord
from typing import Any

from mmprompt.log import log


class RunnerLog(Handler):
    """Hands on to a runner's logger, which is asked for when there is something to tell."""

    def __init__(self, logger: Callable[[], Any]) -> None:
        super().__init__(WARNING)
        self._logger = logger

    def emit(self, record: LogRecord) -> None:
        """Tell a warning as the runner tells its own; nothing where it does not run, and so has no log."""
        logger = self._logger()
        if logger.hasHandlers():
            logger.warning("mmprompt: %s", record.getMessage())


def tell_in(logger: Callable[[], Any]) -> None:
    """Have the runner's logger tell what mmprompt warns of, from now on."""
    log.addHandler(RunnerLog(logger))
