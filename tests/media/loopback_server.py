"""A web server on the loopback address that answers exactly what a test says, byte for byte."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Union

CERTIFICATE = Path(__file__).with_name("loopback.pem")
"""A key and its certificate, made for these tests: it is nobody's."""

PATIENCE = 20.0
"""Seconds for which a client may stand still; the end of a test ends its server at once."""

LOOK = 0.01
"""Seconds between two looks at whether the test is over."""

Answer = Union[bytes, Callable[[socket.socket], None]]


def reply(body: bytes = b"", status: str = "200 OK", **headers: object) -> bytes:
    """Return an answer; ``Content_Type="x"`` is a header, and one that is None is left out."""
    given = {"Content_Length": len(body), **headers}
    lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in given.items() if value is not None]
    return f"HTTP/1.1 {status}\r\n{''.join(lines)}\r\n".encode("latin-1") + body


class LoopbackServer:
    """Serves until the block is left.

    Args:
        answers: what each request gets, in turn, and the last one for ever; bytes are sent and the connection kept, a
            function is given the socket, and the connection closed after it.
        tls: speak TLS with a certificate that nobody trusts.

    ``requests`` holds the head of each request, ``connections`` counts what was accepted, ``sent`` the bytes of
    ``pour`` and ``drip``.
    """

    def __init__(self, *answers: Answer, tls: bool = False, host: str = "127.0.0.1") -> None:
        self._answers: Sequence[Answer] = answers or (reply(b"hello"),)
        self._tls = None
        if tls:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(CERTIFICATE)
        self._listener = socket.create_server((host, 0), backlog=50)
        self._listener.settimeout(LOOK)
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self.port: int = self._listener.getsockname()[1]
        self.host = host
        self.requests: list[str] = []
        self.connections = 0
        self.sent = 0

    def __enter__(self) -> LoopbackServer:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(2 * PATIENCE)
        self._listener.close()
        assert not any(thread.is_alive() for thread in self._threads)

    @property
    def entry(self) -> str:
        """The entry of ``allow_domains`` that allows this very server."""
        return f"{self.host}:{self.port}"

    def url(self, path: str = "/a.png", host: str | None = None) -> str:
        return f"http{'s' if self._tls else ''}://{host or self.host}:{self.port}{path}"

    def drip(self, piece: bytes, pause: float, head: bytes = b"") -> Answer:
        """Return an answer that gives ``piece`` again and again, with a pause before each, until the client goes."""

        def answer(sock: socket.socket) -> None:
            sock.sendall(head)
            while not self._over.wait(pause):
                sock.sendall(piece)
                self.sent += len(piece)

        return answer

    def pour(self, head: bytes, limit: int) -> Answer:
        """Return an answer that gives zeros as fast as they are taken, up to ``limit`` of them."""

        def answer(sock: socket.socket) -> None:
            sock.sendall(head)
            sock.settimeout(LOOK)
            while self.sent < limit and not self._over.is_set():
                with suppress(TimeoutError):  # the client takes nothing, and may keep the connection all the same
                    taken = sock.send(bytes(1 << 16))
                    self.sent += taken

        return answer

    def hang(self, sock: socket.socket) -> None:
        """Answer nothing until the client goes."""
        sock.settimeout(LOOK)
        while not self._over.is_set():
            try:
                if not sock.recv(1 << 16):
                    return
            except TimeoutError:
                continue

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                sock, _ = self._listener.accept()
            except TimeoutError:
                continue
            self.connections += 1
            self._start(self._serve, sock)

    def _serve(self, sock: socket.socket) -> None:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(PATIENCE)
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_side=True)
            while (head := self._head(sock)) is not None:
                with self._lock:
                    answer = self._answers[min(len(self.requests), len(self._answers) - 1)]
                    self.requests.append(head)
                if not isinstance(answer, bytes):
                    answer(sock)
                    return
                sock.sendall(answer)
        except OSError:  # the client went
            pass
        finally:
            sock.close()

    def _head(self, sock: socket.socket) -> str | None:
        """Return the head of the next request, or None if the client or the test is through."""
        data = b""
        until = time.monotonic() + PATIENCE
        sock.settimeout(LOOK)
        while not data.endswith(b"\r\n\r\n"):
            try:
                piece = sock.recv(1 << 16)
            except TimeoutError:
                if self._over.is_set() or time.monotonic() > until:
                    return None
                continue
            if not piece:
                return None
            data += piece
        sock.settimeout(PATIENCE)
        return data.decode("latin-1")


@contextmanager
def closed_port(host: str = "127.0.0.1") -> Iterator[int]:
    """Give a port at which nobody answers; it is held, so that no other program opens it meanwhile."""
    with socket.socket() as held:
        held.bind((host, 0))
        yield held.getsockname()[1]


def free_udp_ports() -> int:
    """Return an even port at which, and at the next, nobody listens just now."""
    while True:
        with socket.socket(type=socket.SOCK_DGRAM) as one, socket.socket(type=socket.SOCK_DGRAM) as other:
            one.bind(("127.0.0.1", 0))
            port: int = one.getsockname()[1]
            if port % 2 == 0:
                with suppress(OSError):
                    other.bind(("127.0.0.1", port + 1))
                    return port


def reset(sock: socket.socket) -> None:
    """Answer by breaking the connection off, as a crashed server does."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
