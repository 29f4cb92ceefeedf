"""Connections with one deadline for a request and its whole answer.

The timeout of a socket bounds each wait alone: a server that sends one byte a second would never end, and a large
request would have to be sent within the time allowed for connecting.

Loaded with the first request, as it needs urllib3.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from mmprompt.media.fetch.connections import TimedResponse

if TYPE_CHECKING:
    from requests import PreparedRequest, Response
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


class Sender:
    """Sends bodies to one server, each in at most ``seconds``. For one thread; it keeps its connection open.

    It uses an adapter without a ``Session``, which would take as long as the rest of a request: it reads proxies, CA
    bundle and netrc anew for each one, and merges settings that never change. Here the proxies and the CA bundle of the
    environment are read once; there are no netrc entries, cookies or redirects.
    """

    def __init__(self, base_url: str, seconds: float, headers: Mapping[str, str]) -> None:
        import requests  # noqa: PLC0415  # heavy

        self._adapter = timed_adapter(seconds)
        self._headers = requests.utils.default_headers()
        self._headers.update(headers)
        self._seconds = seconds
        self._proxies = dict(requests.utils.get_environ_proxies(base_url))
        bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
        self._verify: bool | str = bundle or True
        self._ready: dict[str, PreparedRequest] = {}

    def post(self, url: str, body: bytes, connect: float) -> Response:
        """Send a body, and return the answer with its own body unread; connecting takes at most ``connect`` seconds."""
        import requests  # noqa: PLC0415  # heavy

        ready = self._ready.get(url)
        if ready is None:
            ready = self._ready[url] = requests.Request("POST", url, headers=self._headers).prepare()
        request = ready.copy()
        request.body = body
        request.headers["Content-Length"] = str(len(body))
        timeout = (min(connect, self._seconds), self._seconds)
        return self._adapter.send(request, stream=True, timeout=timeout, verify=self._verify, proxies=self._proxies)

    def close(self) -> None:
        """Close the connections."""
        self._adapter.close()


def timed_adapter(seconds: float) -> HTTPAdapter:
    """Return an adapter for one server, whose requests take at most ``seconds``, also through HTTP proxies.

    A SOCKS proxy has its own connections; there the timeout bounds each wait alone.
    """
    from requests.adapters import HTTPAdapter  # noqa: PLC0415  # heavy

    class TimedAdapter(HTTPAdapter):
        pool: Any = None  # of the one server; to find it anew takes as long as to parse the answer

        def get_connection_with_tls_context(self, *args: Any, **options: Any) -> Any:
            if self.pool is None:
                pool: Any = super().get_connection_with_tls_context(*args, **options)
                timed = _TIMED.get(pool.ConnectionCls)
                if timed is not None:
                    pool.ConnectionCls = timed
                    pool.conn_kw["seconds"] = seconds
                self.pool = pool
            return self.pool

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
