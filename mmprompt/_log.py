"""The logger of the package: named ``mmprompt``, and silent unless the host configures it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger

    log: Logger

LISTENERS: list[Callable[[str, str, str], object]] = []
"""Each receives every warning: its code, its text without values, and with them."""


def warn(code: str, what: str, *values: object) -> None:
    """Log a warning with the code of its rule."""
    for listener in LISTENERS:
        listener(code, what, what % values)
    logger().warning(what, *values, extra={"code": code}, stacklevel=2)


def logger() -> Logger:
    """Return the logger. It is made when it is first used, because ``logging`` takes several milliseconds to load."""
    import logging  # noqa: PLC0415  # loaded on use

    made = logging.getLogger("mmprompt")
    if not made.handlers:
        made.addHandler(logging.NullHandler())
    return made


def __getattr__(name: str) -> Logger:
    """Give ``log``, the logger."""
    if name != "log":
        raise AttributeError(f"module 'mmprompt._log' has no attribute '{name}'")
    return globals().setdefault("log", logger())  # type: ignore[no-any-return]
