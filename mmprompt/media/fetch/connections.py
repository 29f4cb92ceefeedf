"""Connections that check the address they connect to, and that keep to a deadline and a number of bytes.

A name can resolve to another address each time, so a check before the request proves nothing. Here the connection
itself resolves the name, checks every address, connects to one of them, and checks the peer it is connected to.

Loaded with the first fetch, as it needs urllib3.
"""

from __future__ import annotations

import concurrent.futures
import http.client
import io
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, ClassVar

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError

from mmprompt.errors import SourceError, shown

if TYPE_CHECKING:
    from mmprompt.media.fetch.hosts import AllowedHosts

AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]

_MOST_DIALLED = 6
"""How many addresses of one name are tried at most."""


class _TimedReader(io.RawIOBase):
    """Reads at most ``most`` bytes of a socket until a deadline: each read may wait for the time that is left."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, deadline: float, most: int) -> None:
        super().__init__()
        self._raw = raw
        self._sock = sock
        self._deadline = deadline
        self._left = most

    def readable(self) -> bool:
        """Return True: it can be read."""
        return True

    def fileno(self) -> int:
        """Return the socket's descriptor."""
        return self._raw.fileno()

    def readinto(self, buffer: Any) -> int | None:
        """Read once into ``buffer``."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if self._left < 0:
            raise http.client.HTTPException("the answer is too long")
        self._sock.settimeout(left)
        count = self._raw.readinto(buffer)
        self._left -= count or 0
        return count

    def close(self) -> None:
        """Close the socket's file."""
        try:
            self._raw.close()
        finally:
            super().close()


class TimedResponse(http.client.HTTPResponse):
    """A response whose status line, headers and body must all arrive within the current timeout of its socket.

    The timeout of a socket bounds each wait alone: a server that sends one header a second would never end. ``most`` is
    the number of bytes that may arrive: after a chunk of the size -1, ``http.client`` reads all that comes at once.
    """

    most: ClassVar[int]

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        deadline = time.monotonic() + (sock.gettimeout() or 0.0)
        raw: Any = self.fp.detach()
        self.fp = io.BufferedReader(_TimedReader(raw, sock, deadline, self.most))

    def begin(self) -> None:
        """Read the status line and headers, and drop cookies, whose parsing takes long."""
        super().begin()
        del self.headers["Set-Cookie"], self.headers["Set-Cookie2"]


class _GuardedHTTP(HTTPConnection):
    """A connection that only connects to hosts and addresses that ``hosts`` allows."""

    hosts: ClassVar[AllowedHosts]

    def connect(self) -> None:
        """Connect, and check the peer before a request is sent."""
        super().connect()
        if self.sock is not None:  # _new_conn has checked it; this holds even if urllib3 no longer calls that
            self._check_peer(self.sock)

    def _new_conn(self) -> socket.socket:
        seconds = self.timeout if isinstance(self.timeout, (int, float)) else 0.0
        deadline = time.monotonic() + seconds
        host, port = self.host, self.port
        self.hosts.check(host, port)
        found = _resolve(host, port, seconds)
        if found is None:
            raise ConnectTimeoutError(self, "the name was not resolved in time")
        for *_, where in found:
            # an IPv6 address may carry its scope beside it
            scope = f"%{where[3]}" if len(where) > 3 and where[3] else ""
            self.hosts.check_address(host, port, f"{where[0]}{scope}")
        sys.audit("http.client.connect", self, host, port)
        return self._dial(found[:_MOST_DIALLED], deadline)

    def _dial(self, found: list[AddressInfo], deadline: float) -> socket.socket:
        """Connect to the first address that answers; each may use its share of the time that is left."""
        for number, (family, kind, protocol, _, where) in enumerate(found):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            try:
                sock = socket.socket(family, kind, protocol)
            except OSError:  # no IPv6 here
                continue
            try:
                for option in self.socket_options or ():
                    sock.setsockopt(*option)
                sock.settimeout(left / (len(found) - number))
                sock.connect(where)
                self._check_peer(sock)
                sock.settimeout(max(deadline - time.monotonic(), 0.001))  # for the TLS handshake
            except OSError:
                sock.close()
                continue
            except BaseException:
                sock.close()
                raise
            return sock
        if deadline - time.monotonic() <= 0.01:
            raise ConnectTimeoutError(self, "no address answered in time")
        raise SourceError(
            f"host {shown(self.host, 60)} cannot be reached", "check the URL, and the network", code="MM218"
        )

    def _check_peer(self, sock: socket.socket) -> None:
        peer = sock.getpeername()
        self.hosts.check_address(self.host, self.port, str(peer[0]))


class _GuardedHTTPS(_GuardedHTTP, HTTPSConnection):
    """The same over TLS."""


def pool_classes(hosts: AllowedHosts, most: int) -> dict[str, type[HTTPConnectionPool]]:
    """Return pools of guarded connections by scheme, for ``PoolManager.pool_classes_by_scheme``.

    An answer may have ``most`` bytes, its head and what frames its body included.
    """

    class Response(TimedResponse):
        pass

    class PlainConnection(_GuardedHTTP):
        response_class = Response

    class SecureConnection(_GuardedHTTPS):
        response_class = Response

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = PlainConnection

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = SecureConnection

    Response.most = most
    PlainConnection.hosts = SecureConnection.hosts = hosts
    return {"http": PlainPool, "https": SecurePool}


def _resolve(host: str, port: int, seconds: float) -> list[AddressInfo] | None:
    """Return the addresses of a name, or None if they did not arrive in time.

    The system's resolver cannot be interrupted, so it runs in a separate thread, which ends when the resolver does.
    """
    answer: concurrent.futures.Future[list[Any]] = concurrent.futures.Future()

    def ask() -> None:
        try:
            answer.set_result(socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:  # a label that is too long is a UnicodeError
            answer.set_exception(error)

    threading.Thread(target=ask, name="mmprompt-resolve", daemon=True).start()
    try:
        found = answer.result(seconds)
    except concurrent.futures.TimeoutError:
        return None
    except socket.gaierror as error:
        if error.errno == socket.EAI_AGAIN:
            raise
        raise _unknown(host) from None
    except UnicodeError:
        raise _unknown(host) from None
    if not found:
        raise _unknown(host)
    return found


def _unknown(host: str) -> SourceError:
    return SourceError(f"host {shown(host, 60)} is not known", "check the URL, and the network", code="MM218")
