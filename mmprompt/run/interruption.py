"""What ``^C`` does while a run asks: the first lets what is in flight end, the second stops at once.

A server has nothing in flight to wait for: ``^C``, ``SIGTERM`` and ``SIGHUP`` end it alike.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Is true after the first ``^C`` in its block. The second raises ``KeyboardInterrupt``, as it does by default.

    In a thread other than the main one, or where the caller handles ``SIGINT``, it does nothing.

    Args:
        on_first: called after the first one, in a thread of its own.
    """

    def __init__(self, on_first: Callable[[], object] | None = None) -> None:
        self.stop: Callable[[], object] | None = None
        self._on_first = on_first
        self._came = False
        self._installed = False

    def __bool__(self) -> bool:
        return self._came

    def __enter__(self) -> Interruption:
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._handle)
            self._installed = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._installed = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._came:
            signal.default_int_handler(number, frame)
        self._came = True
        # a handler may interrupt the very code whose lock ``stop`` takes, so it runs elsewhere
        threading.Thread(target=self._begin_to_stop, name="mmprompt-stop", daemon=True).start()

    def _begin_to_stop(self) -> None:
        if self.stop is not None:
            self.stop()
        if self._on_first is not None:
            self._on_first()


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let ``SIGTERM`` and ``SIGHUP`` end the block as ``^C`` does, so that it removes its files and processes.

    One that the caller handles or ignores, as ``nohup`` does, stays as it is.
    """
    if threading.current_thread() is not threading.main_thread():  # only that one gets signals
        yield
        return
    ends = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    ours = [end for end in ends if signal.getsignal(end) is signal.SIG_DFL]
    for end in ours:
        signal.signal(end, signal.default_int_handler)
    try:
        yield
    finally:
        for end in ours:
            signal.signal(end, signal.SIG_DFL)
