"""Connections with one deadline for a request and its whole answer.

The timeout of a socket bounds each wait alone: a server that sends one byte a second would never end, and a large
request would have to be sent within the time allowed for connecting.

Loaded with the first request, as it needs urllib3.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from mmprompt.media.fetch.connections import TimedResponse

if TYPE_CHECKING:
    from requests import PreparedRequest, Session
    from requests.adapters import HTTPAdapter


class _TimedHTTP(HTTPConnection):
    """A connection on which each request and its answer together take at most ``seconds``."""

    response_class = TimedResponse

    def __init__(self, *args: Any, seconds: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds

    def request(self, *args: Any, **options: Any) -> None:
        """Send a request."""
        self._deadline = time.monotonic() + self._seconds
        super().request(*args, **options)

    def send(self, data: Any) -> None:
        """Send a piece of a request; connecting has its own timeout."""
        if self.sock is None:
            self.connect()
        if self.sock is not None:
            self.sock.settimeout(self._left())
        super().send(data)

    def getresponse(self) -> Any:
        """Return the answer, which must be read in the time that is left."""
        self.timeout = self._left()
        return super().getresponse()

    def _left(self) -> float:
        return max(self._deadline - time.monotonic(), 0.001)  # 0 would mean a socket that never waits


class _TimedHTTPS(_TimedHTTP, HTTPSConnection):
    """The same over TLS."""


_TIMED: dict[type, type] = {HTTPConnection: _TimedHTTP, HTTPSConnection: _TimedHTTPS}


def new_session(
    base_url: str, seconds: float, headers: Mapping[str, str], sign: Callable[[PreparedRequest], PreparedRequest]
) -> Session:
    """Return a session whose requests take at most ``seconds``, and that has no cookies.

    The proxies and the CA bundle of the environment are read here once: ``requests`` reads them anew for each request,
    which takes as long as the rest of its work.
    """
    from http.cookiejar import DefaultCookiePolicy  # noqa: PLC0415  # heavy, as the next

    import requests  # noqa: PLC0415  # heavy

    session = requests.Session()
    session.proxies = dict(requests.utils.get_environ_proxies(base_url))
    session.verify = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or True
    session.trust_env = False  # nor is netrc read
    for scheme in ("http://", "https://"):
        session.mount(scheme, timed_adapter(seconds))
    session.headers.update(headers)
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    session.auth = sign
    return session


def timed_adapter(seconds: float) -> HTTPAdapter:
    """Return an adapter for sessions whose requests take at most ``seconds``, also through HTTP proxies.

    A SOCKS proxy has its own connections; there the timeout bounds each wait alone.
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
    """Return whether a request failed on a timeout. ``requests`` has no timeout error for sending and for bodies."""
    cause = next(iter(fault.args), None)
    return isinstance(cause, ReadTimeoutError) or (
        isinstance(cause, ProtocolError) and isinstance(cause.args[-1], TimeoutError)
    )


def was_there(fault: Exception) -> bool:
    """Return whether a server ended the connection; if not, there was no connection."""
    return isinstance(next(iter(fault.args), None), ProtocolError)
