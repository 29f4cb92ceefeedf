"""Connections that hold one moment for a request and its whole answer.

The time-out of a socket bounds each wait alone: a server that sends a byte a second would be waited for without end,
and a large request would have to be sent in the time that connecting may take.

Loaded with the first request, as it needs urllib3.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from mmprompt.media.fetch.connections import TimedResponse

if TYPE_CHECKING:
    from requests.adapters import HTTPAdapter


class _TimedHTTP(HTTPConnection):
    """A connection whose requests and their answers take ``seconds`` at most, from the begin of each."""

    response_class = TimedResponse

    def __init__(self, *args: Any, seconds: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds

    def request(self, *args: Any, **options: Any) -> None:
        """Send a request.

        Raises:
            TimeoutError: it is not taken in time.
        """
        self._deadline = time.monotonic() + self._seconds
        super().request(*args, **options)

    def send(self, data: Any) -> None:
        """Send a piece of a request; connecting has a time-out of its own."""
        if self.sock is None:
            self.connect()
        if self.sock is not None:
            self.sock.settimeout(self._left())
        super().send(data)

    def getresponse(self) -> Any:
        """Return the answer, which is read within what is left of the time."""
        self.timeout = self._left()
        return super().getresponse()

    def _left(self) -> float:
        return max(self._deadline - time.monotonic(), 0.001)  # 0 would mean not to wait at all


class _TimedHTTPS(_TimedHTTP, HTTPSConnection):
    """The same through TLS."""


_TIMED: dict[type, type] = {HTTPConnection: _TimedHTTP, HTTPSConnection: _TimedHTTPS}


def timed_adapter(seconds: float) -> HTTPAdapter:
    """Return what gives a session connections, through proxies too, whose requests take ``seconds`` at most.

    A SOCKS proxy has connections of its own, and keeps to the time-out of each wait.
    """
    from requests.adapters import HTTPAdapter  # noqa: PLC0415  # heavy

    class TimedAdapter(HTTPAdapter):
        def get_connection_with_tls_context(self, *args: Any, **options: Any) -> Any:
            pool: Any = super().get_connection_with_tls_context(*args, **options)
            timed = _TIMED.get(pool.ConnectionCls)
            if timed is not None:
                pool.ConnectionCls = timed
                pool.conn_kw["seconds"] = seconds
            return pool

    return TimedAdapter()


def is_late(fault: Exception) -> bool:
    """Tell whether requests gave up because of the time: in a body, or in sending, it has no name of its own for it."""
    cause = next(iter(fault.args), None)
    return isinstance(cause, ReadTimeoutError) or (
        isinstance(cause, ProtocolError) and isinstance(cause.args[-1], TimeoutError)
    )


def was_there(fault: Exception) -> bool:
    """Tell whether a server ended the connection, rather than that there was none."""
    return isinstance(next(iter(fault.args), None), ProtocolError)
