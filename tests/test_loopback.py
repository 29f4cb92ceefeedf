"""The server that tests start ends with them."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler

import pytest
from loopback import serving


class Endless(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        while True:
            self.wfile.write(bytes(1 << 20))


def test_no_thread_of_a_server_outlives_its_block_and_a_client_that_goes_is_not_told(
    capfd: pytest.CaptureFixture[str],
) -> None:
    before = set(threading.enumerate())
    with ExitStack() as kept:
        with serving(Endless) as port:
            kept.enter_context(socket.create_connection(("127.0.0.1", port)))  # asks nothing
            taking = kept.enter_context(socket.create_connection(("127.0.0.1", port)))
            taking.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert taking.recv(1)
        assert not set(threading.enumerate()) - before
    assert capfd.readouterr() == ("", "")
