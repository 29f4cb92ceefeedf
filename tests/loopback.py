"""The one way in which the tests start an HTTP server: on the loopback address, for the time of a block."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Server(ThreadingHTTPServer):
    request_queue_size = 64  # beyond the usual 5 a client of many waits a second for its next try to connect

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a client that went, which may be seen late: another test would have it in what it captures."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # as it is called


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """Give the port of a server whose requests ``handler`` answers; it ends with the block, and sets ``over`` then."""
    server = _Server(("127.0.0.1", 0), handler)
    server.over = threading.Event()  # type: ignore[attr-defined]  # for handlers that wait
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.over.set()  # type: ignore[attr-defined]  # likewise
        server.shutdown()
        thread.join()
        server.server_close()
