"""Connections with one deadline for a request and its whole answer.

The timeout of a socket bounds each wait alone: a server that sends one byte a second would never end, and a large
request would have to be sent within the time allowed for connecting.

Loaded with the first request, as it needs urllib3.
"""

from __future__ import annotations

import os
import ssl
import time
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ProtocolError, ReadTimeoutError
from urllib3.util import Retry, Timeout

from mmprompt.run.plain_answer import EARLY, PlainAnswer, later_answer, plain_answer

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

_PIECE = 1 << 16
_MOST_PIECES = 256
"""How many pieces go into one call; systems take 1024, some fewer."""

_ONCE = Retry(False, redirect=False)


class _Head(HTTPConnection):
    """Keeps what it would send: the head of a request, with all checks of its headers."""

    sent = b""

    def send(self, data: Any) -> None:
        """Keep a piece of a request."""
        self.sent += data


class _TimedHTTP(HTTPConnection):
    """A connection on which each request and its answer together take at most ``seconds``.

    The head of a request is made once, and goes out with the body in one call of the system.
    """

    def __init__(self, *args: Any, seconds: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._heads: dict[tuple[str, ...], bytes] = {}

    def request(self, method: str, url: str, body: Any = None, headers: Any = None, **_: Any) -> None:
        """Send a request, whose body is a sequence of pieces."""
        self._deadline = time.monotonic() + self._seconds
        if self.sock is None:
            self.connect()
        head = b"%b%d\r\n\r\n" % (self._head(method, url, headers), sum(map(len, body)))
        self._send_all([head, *body])

    def _send_all(self, pieces: Sequence[bytes]) -> None:
        """Send pieces one after the other; where the system can, with as few calls as it takes."""
        sock: Any = self.sock
        sock.settimeout(self._left())
        if isinstance(sock, ssl.SSLSocket) or not hasattr(sock, "sendmsg"):
            sock.sendall(b"".join(pieces))  # within the timeout as a whole
            return
        rest = deque(memoryview(piece) for piece in pieces if piece)
        while rest:
            sent = sock.sendmsg(list(islice(rest, _MOST_PIECES)))
            while rest and sent >= len(rest[0]):
                sent -= len(rest.popleft())
            if sent:
                rest[0] = rest[0][sent:]
            sock.settimeout(self._left())

    def getresponse(self) -> Any:
        """Return the answer, which must be read in the time that is left."""
        sock: Any = self.sock
        received = b""
        try:
            while True:
                sock.settimeout(self._left())
                if not (piece := sock.recv(_PIECE)):
                    break
                received += piece
                while early := EARLY.match(received):
                    received = received[early.end() :]
                answer, more = plain_answer(received)
                if answer is not None:
                    return answer
                if not more:
                    break
        except OSError as fault:
            if isinstance(fault, TimeoutError) or not received:
                raise
        later, stays = later_answer(sock, received, self._left())
        if not stays:
            self.close()
        return later

    def _head(self, method: str, url: str, headers: Mapping[str, str]) -> bytes:
        """Return the head of a request up to the number in its last header, which is that of its length."""
        key = (method, url, *headers.values())
        if key not in self._heads:
            through = self._tunnel_host  # then its own host is the proxy
            recorder: Any = _Head(through or self.host, self._tunnel_port if through else self.port)
            recorder.default_port = self.default_port
            recorder.request(method, url, headers={**headers, "Content-Length": "0"})
            self._heads[key] = recorder.sent.removesuffix(b"0\r\n\r\n")
        return self._heads[key]

    def _left(self) -> float:
        """Return the seconds that are left.

        Raises:
            TimeoutError: there are none.
        """
        if (left := self._deadline - time.monotonic()) <= 0:
            raise TimeoutError
        return left


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
        self._timed = timed is not None
        if timed is not None:
            pool.ConnectionCls = timed
            pool.conn_kw["seconds"] = seconds
        self._pool: Any = pool
        self._address = self._adapter.request_url(request, proxies)
        self._headers = dict(headers)
        self._timeout = Timeout(connect=min(connect, seconds), read=seconds)

    def post(self, path: str, body: Sequence[bytes]) -> BaseHTTPResponse | PlainAnswer:
        """Send a body, in pieces, to a path below the base URL, and return the answer with its own body unread.

        Raises:
            urllib3.exceptions.HTTPError: the request could not be sent, or there is no answer.
        """
        answer: BaseHTTPResponse | PlainAnswer = self._pool.urlopen(
            "POST",
            self._address + path,
            body=body if self._timed else b"".join(body),
            headers=self._headers,
            retries=_ONCE,
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


def is_ended(fault: Exception) -> bool:
    """Return whether a connection ended before anything came on it, or while it was sent to."""
    return isinstance(fault, ProtocolError) and isinstance(fault.args[-1], OSError)


def is_cut(fault: Exception) -> bool:
    """Return whether a fault of TLS is a connection that ended, as when a server starts anew."""
    return isinstance(next(iter(fault.args), None), (ssl.SSLEOFError, ssl.SSLZeroReturnError))
