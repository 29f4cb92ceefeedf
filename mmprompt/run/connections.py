"""Connections with one deadline for a request and its whole answer.

The timeout of a socket bounds each wait alone: a server that sends one byte a second would never end, and a large
request would have to be sent within the time allowed for connecting.

Loaded with the first request, as it needs urllib3.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ProtocolError, ReadTimeoutError
from urllib3.util import Timeout

from mmprompt.media.fetch.connections import TimedResponse

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse


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
    """Sends bodies to one server, each in at most ``seconds``. For one thread; it keeps its connections open.

    ``requests`` finds the proxy and the certificates that the environment names, once; to find them anew, and to wrap
    each answer, takes it longer than all else. There are no netrc entries, cookies or redirects. A SOCKS proxy has its
    own connections, so there the timeout bounds each wait alone.

    Raises:
        OSError: the proxy or the certificates that the environment names cannot be used.
    """

    def __init__(self, base_url: str, seconds: float, connect: float, headers: Mapping[str, str]) -> None:
        import requests  # noqa: PLC0415  # heavy
        from requests.adapters import HTTPAdapter  # noqa: PLC0415  # heavy

        proxies = requests.utils.get_environ_proxies(base_url)
        bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or True
        request = requests.Request("POST", base_url).prepare()
        self._adapter: Any = HTTPAdapter()
        pool: Any = self._adapter.get_connection_with_tls_context(request, bundle, proxies)
        self._adapter.cert_verify(pool, base_url, bundle, None)  # type: ignore[no-untyped-call]
        timed = _TIMED.get(pool.ConnectionCls)
        if timed is not None:
            pool.ConnectionCls = timed
            pool.conn_kw["seconds"] = seconds
        self._pool: Any = pool
        self._address = self._adapter.request_url(request, proxies)
        self._headers = dict(headers)
        self._timeout = Timeout(connect=min(connect, seconds), read=seconds)

    def post(self, path: str, body: bytes) -> BaseHTTPResponse:
        """Send a body to a path below the base URL, and return the answer with its own body unread.

        Raises:
            urllib3.exceptions.HTTPError: the request could not be sent, or there is no answer.
        """
        answer: BaseHTTPResponse = self._pool.urlopen(
            "POST",
            self._address + path,
            body=body,
            headers=self._headers,
            retries=False,
            redirect=False,
            assert_same_host=False,
            preload_content=False,
            timeout=self._timeout,
        )
        return answer

    def close(self) -> None:
        """Close the connections."""
        self._adapter.close()


def is_late(fault: Exception) -> bool:
    """Return whether a request failed on a timeout; while it is sent, urllib3 calls that a broken connection."""
    return isinstance(fault, ReadTimeoutError) or (
        isinstance(fault, ProtocolError) and isinstance(fault.args[-1], TimeoutError)
    )


def is_cut(fault: Exception) -> bool:
    """Return whether a fault of TLS is a connection that ended, as when a server starts anew."""
    return isinstance(next(iter(fault.args), None), (ssl.SSLEOFError, ssl.SSLZeroReturnError))
