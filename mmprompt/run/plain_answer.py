"""The answer of a model server as it comes from a socket: most often whole, with its length; else as urllib3 reads it.

``http.client`` parses the headers of an answer as those of a mail, and urllib3 does so again, which takes longer than
to send the request. An answer of the plain kind needs neither. Any other is left to them.

Loaded with the first request, as it needs urllib3.
"""

from __future__ import annotations

import io
import re
import socket
from collections.abc import Iterator
from typing import Any

from urllib3 import HTTPHeaderDict, HTTPResponse

from mmprompt.media.fetch.connections import TimedResponse

_LONGEST_HEAD = 1 << 16
_LONGEST_PLAIN = 8 << 20
"""Bytes. A longer body is read piece by piece."""

_BEGIN = b"HTTP/1.1 "
_END = re.compile(rb"\n\r?\n")
EARLY = re.compile(rb"HTTP/1\.1 10[02-9](?: [^\r\n\0]*)?\r\n(?:[A-Za-z0-9_-]+:[^\r\n\0]*\r\n)*\r\n")
"""An answer before the answer, such as 100 or 103."""

_HEAD = re.compile(rb"HTTP/1\.1 ([2-5][0-9][0-9])(?: [^\r\n\0]*)?\r\n((?:[A-Za-z0-9_-]+:[^\r\n\0]*\r\n)+)\r\n")
_NOT_PLAIN = frozenset(("transfer-encoding", "content-encoding", "connection", "proxy-connection", "set-cookie"))
_WITHOUT_BODY = frozenset((b"204", b"304"))


class _Headers(dict[str, str]):
    """Headers by their names in small letters."""

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a header."""
        return super().get(name.lower(), default)


class PlainAnswer:
    """An answer that has come whole. It has what the client and urllib3's pool use of ``urllib3.HTTPResponse``."""

    version_string = "HTTP/1.1"
    length_remaining = 0

    def __init__(self, status: int, headers: _Headers, body: bytes) -> None:
        self.status = status
        self.headers = headers
        self._body = body
        self._pool: Any = None
        self._connection: Any = None  # the pool sets both

    def stream(self, _size: int) -> Iterator[bytes]:
        """Yield the body."""
        yield self._body

    def close(self) -> None:
        """Give the connection back to its pool: nothing is left to read."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool._put_conn(connection)  # noqa: SLF001  # as urllib3's own response does


def plain_answer(received: bytes) -> tuple[PlainAnswer | None, bool]:
    """Return the answer that a socket gave so far, if it is whole and plain; else None, and whether it may become so.

    It is plain if it has a length, comes neither in chunks nor compressed, and leaves the connection open.
    """
    end = received.find(b"\r\n\r\n")
    if end < 0:
        begins = received.startswith(_BEGIN[: len(received)])
        return None, begins and len(received) < _LONGEST_HEAD and _END.search(received) is None
    found = _HEAD.match(received)
    if found is None or found[1] in _WITHOUT_BODY:
        return None, False
    headers = _Headers()
    for line in found[2].decode("latin-1").split("\r\n")[:-1]:
        name, _, value = line.partition(":")
        name, value = name.lower(), value.strip(" \t")
        if name in headers or (name in _NOT_PLAIN and (name, value.lower()) != ("connection", "keep-alive")):
            return None, False
        headers[name] = value
    length = headers.get("content-length", "")
    if not (length.isascii() and length.isdigit() and len(length) < 9) or int(length) > _LONGEST_PLAIN:
        return None, False
    body = received[found.end() :]
    if len(body) == int(length):
        return PlainAnswer(int(found[1]), headers, body), False
    return None, len(body) < int(length)


class _Continued(TimedResponse):
    """A response of which some bytes were received already."""

    most = 1 << 27

    def __init__(self, sock: socket.socket, received: bytes) -> None:
        super().__init__(sock, method="POST")
        self.fp = io.BufferedReader(_Prefixed(received, self.fp))


class _Prefixed(io.RawIOBase):
    """Gives some bytes, and then those of a file."""

    def __init__(self, first: bytes, file: io.BufferedReader) -> None:
        super().__init__()
        self._first = first
        self._file = file

    def readable(self) -> bool:
        """Return True: it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read once into ``buffer``."""
        if not self._first:
            return self._file.readinto1(buffer)
        piece, self._first = self._first[: len(buffer)], self._first[len(buffer) :]
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """Close the file."""
        try:
            self._file.close()
        finally:
            super().close()


def later_answer(sock: socket.socket, received: bytes, seconds: float) -> tuple[HTTPResponse, bool]:
    """Return the answer of a socket with its body unread, and whether the connection stays open after it.

    It does not if more came than the length of the answer: nobody knows what the rest belongs to.

    Raises:
        OSError: the socket failed, or gave nothing in time.
        http.client.HTTPException, urllib3.exceptions.InvalidHeader: what came is no answer.
    """
    sock.settimeout(seconds)
    response = _Continued(sock, received)
    try:
        response.begin()
        answer = HTTPResponse(
            body=response,
            headers=HTTPHeaderDict(response.msg.items()),
            status=response.status,
            version=response.version,
            reason=response.reason,
            preload_content=False,
            original_response=response,
            enforce_content_length=True,
            request_method="POST",
        )
    except BaseException:
        response.close()
        raise
    came = len(received.partition(b"\r\n\r\n")[2])
    return answer, not response.will_close and (response.length is None or came <= response.length)
