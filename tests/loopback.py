"""The one way in which the tests start an HTTP server: on the loopback address, for the time of a block."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class _Server(ThreadingHTTPServer):
    """A server whose threads end with it, so that none of them records or prints while another test runs."""

    daemon_threads = False  # those of daemons are not waited for
    request_queue_size = 128  # a runner asks for all its rows at once

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.over = threading.Event()  # for handlers that wait
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a body after its head waits 40 ms otherwise
        super().process_request(request, client_address)

    def close_request(self, request: Any) -> None:
        self._open.discard(request)
        super().close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # a client that has gone is no fault
            super().handle_error(request, client_address)

    def end(self) -> None:
        """End the connections, kept open or not, and wait for their threads."""
        self.over.set()
        self.shutdown()
        for connection in list(self._open):
            with suppress(OSError):  # closed meanwhile
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """Give the port of a server whose requests ``handler`` answers; it ends with the block, and sets ``over`` then."""
    server = _Server(handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.end()
        thread.join()
