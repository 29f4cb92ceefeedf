"""Answers that no right server gives, byte for byte, and a server that gives them.

``FRAMES`` break HTTP, so they are for whatever reads it; ``BODIES`` are right HTTP around what is no reply of a model.
"""

from __future__ import annotations

import gzip
import json
import random
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, NamedTuple

from time_taken import GENEROUS

MARK = b"hostile"
"""A request that holds this gets the hostile answer; any other gets ``GOOD``."""

TIMEOUT = 0.4
"""Seconds for a client to wait for answers that never end: each attempt takes so long."""


WITH_THE_END = getattr(socket, "MSG_MORE", 0)
"""Sends the end of a connection together with the last bytes: a client that has read these knows of it."""


class Hostile(NamedTuple):
    """An answer: what is sent, at once or in ``pieces``, and what becomes of the connection then."""

    data: bytes
    then: str = "close"
    """``close``, ``reset``, ``stay`` open in silence, or ``repeat`` the last of the pieces for ever."""

    pieces: tuple[bytes, ...] = ()

    @property
    def timeout(self) -> float:
        """How many seconds a client should wait: an answer that ends is met whole, however busy the machine is."""
        return TIMEOUT if self.then in ("stay", "repeat") else GENEROUS


def said(content: object, **more: object) -> bytes:
    return json.dumps({"choices": [{"message": {"content": content}, "finish_reason": "stop"}], **more}).encode()


def sized(body: bytes, status: str = "200 OK", *headers: bytes) -> bytes:
    lines = b"".join(line + b"\r\n" for line in headers)
    return b"HTTP/1.1 %b\r\n%bContent-Length: %d\r\n\r\n%b" % (status.encode("latin-1"), lines, len(body), body)


OK = b"HTTP/1.1 200 OK\r\n"
BODY = said("A cat.")
GOOD = sized(BODY)
CHUNKS = OK + b"Transfer-Encoding: chunked\r\n\r\n"
GZIP, DEFLATE = (
    OK + b"Content-Encoding: " + name + b"\r\nContent-Length: %d\r\n\r\n%b" for name in (b"gzip", b"deflate")
)
PACKED = gzip.compress(BODY, mtime=0)
STREAM = b"Content-Type: text/event-stream"
NOISE = random.Random(27).randbytes(4096)


def packed(form: bytes, data: bytes) -> bytes:
    return form % (len(data), data)


def chunk(size: bytes, data: bytes = BODY) -> bytes:
    return CHUNKS + size + b"\r\n" + data + b"\r\n0\r\n\r\n"


def headers(*lines: bytes, body: bytes = b"") -> bytes:
    return OK + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


SIZE = b"%x" % len(BODY)

FRAMES: dict[str, Hostile] = {
    name: answer if isinstance(answer, Hostile) else Hostile(answer)
    for name, answer in {
        # chunks
        "a chunk of a negative size": chunk(b"-5"),
        "a chunk of a negative size after a good one": CHUNKS + SIZE + b"\r\n" + BODY + b"\r\n-1\r\n\r\n",
        "a chunk of a negative size larger than memory": chunk(b"-" + b"F" * 16),
        "a chunk size that is no number": chunk(b"zz"),
        "a chunk size that is empty": chunk(b""),
        "a chunk size of NUL": chunk(b"\0"),
        "a chunk size in Arabic digits": chunk("٥".encode()),
        "a chunk size of 64 bits": chunk(b"F" * 16),
        "a chunk size of 5,000 digits": chunk(b"F" * 5000),
        "a chunk size of 100,000 digits": chunk(b"F" * 100_000),
        "a chunk size without an end": Hostile(CHUNKS + b"0" * 1000, "stay"),
        "a chunk longer than its size": chunk(b"1"),
        "chunks without the last one": CHUNKS + SIZE + b"\r\n" + BODY[:-5],
        "chunks whose trailer never ends": Hostile(CHUNKS + b"0\r\n", "repeat", (b"X: y\r\n" * 1000,)),
        "chunks whose trailer is one line without an end": Hostile(CHUNKS + b"0\r\n", "repeat", (b"x" * 4096,)),
        "chunks that never end": Hostile(CHUNKS, "repeat", (b"1\r\n \r\n",)),
        "chunks that are not chunks": CHUNKS + BODY,
        # lengths
        "two lengths": headers(b"Content-Length: 5", b"Content-Length: 6", body=BODY),
        "two lengths in one": headers(b"Content-Length: 5, 6", body=BODY),
        "a negative length": headers(b"Content-Length: -5", body=NOISE),
        "a length of 30 digits": headers(b"Content-Length: 1" + b"0" * 30, body=BODY),
        "a length of 5,000 digits": headers(b"Content-Length: " + b"9" * 5000, body=NOISE),
        "a length that is no number": headers(b"Content-Length: many", body=NOISE),
        "a length above what comes": headers(b"Content-Length: 99999", body=BODY),
        "a length below what comes": headers(b"Content-Length: 9", body=BODY),
        "a length that never comes": Hostile(headers(b"Content-Length: 99999"), "stay"),
        "a length and chunks": headers(b"Content-Length: 9", b"Transfer-Encoding: chunked", body=BODY),
        "a folded length": headers(b"Content-Length:", b" 9", body=BODY),
        # encodings
        "gzip that is none": packed(GZIP, BODY),
        "gzip that is cut": packed(GZIP, PACKED[:30]),
        "gzip with a wrong checksum": packed(GZIP, PACKED[:-8] + b"\0" * 8),
        "gzip with flags that are not known": packed(GZIP, PACKED[:3] + b"\xff" + PACKED[4:]),
        "gzip in chunks that is none": OK
        + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "deflate that is none": packed(DEFLATE, NOISE),
        "deflate with a wrong checksum": packed(DEFLATE, zlib.compress(BODY)[:-4] + b"\0\0\0\0"),
        "an encoding that nobody knows": headers(b"Content-Encoding: rot13", body=NOISE),
        "an encoding that was not asked for": headers(b"Content-Encoding: br", body=NOISE),
        "zstd that is none": headers(b"Content-Encoding: zstd", body=NOISE),
        "six encodings": headers(b"Content-Encoding: gzip, gzip, gzip, gzip, gzip, gzip", body=PACKED),
        "compress, which is no longer used": headers(
            b"Transfer-Encoding: compress, chunked", body=b"5\r\nhello\r\n0\r\n\r\n"
        ),
        "a transfer encoding that nobody knows": headers(b"Transfer-Encoding: xchunked", body=NOISE),
        "a bomb of gzip": packed(GZIP, gzip.compress(bytes(80 << 20), mtime=0)),
        # heads
        "nothing": b"",
        "nothing, and a reset": Hostile(b"", "reset"),
        "nothing for ever": Hostile(b"", "stay"),
        "half a status line": b"HTTP/1.",
        "a status line without an end": b"HTTP/1.1 200 OK",
        "half a header": OK + b"Content-Le",
        "half a head for ever": Hostile(OK + b"X: y\r\n", "stay"),
        "a reset in the head": Hostile(OK + b"X: y\r\n", "reset"),
        "a reset in the body": Hostile(headers(b"Content-Length: 99999", body=BODY), "reset"),
        "a reset among chunks": Hostile(CHUNKS + SIZE + b"\r\n" + BODY + b"\r\n", "reset"),
        "5,000 headers": headers(*[b"X-%d: y" % number for number in range(5000)]),
        "a header of a megabyte": headers(b"X: " + b"y" * (1 << 20)),
        "headers without an end": Hostile(OK, "repeat", (b"X: y\r\n",)),
        "a status line of a megabyte": b"HTTP/1.1 200 " + b"x" * (1 << 20),
        "a header without a colon": headers(b"this is no header", body=NOISE),
        "a header without a name": headers(b": 5", body=NOISE),
        "a header with NUL": headers(b"X: a\0b", b"Content-\0Length: 5", body=NOISE),
        "a header with a bare carriage return": headers(b"X: a\rContent-Length: 5", body=NOISE),
        "headers that are not ASCII": headers(b"\xff\xfe: \xc3\x28", b"Content-Type: \xf0\x9f\x98", body=NOISE),
        "carriage returns alone": OK.replace(b"\n", b"") + b"Content-Length: 2\r\r{}",
        "a blank line first": b"\r\n" + OK + b"Content-Length: 2\r\n\r\n{}",
        # other protocols
        "noise": NOISE,
        "zeros": bytes(4096),
        "HTTP/0.9": b"<html>hello</html>",
        "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "settings of HTTP/2": b"\0\0\x12\4\0\0\0\0\0\0\3\0\0\0\x64\0\4\0\1\0\0\0\5\0\0\x40\0",
        "a status line of HTTP/2": b"HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        "a status line of HTTP/9.9": b"HTTP/9.9 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        "a request": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "an alert of TLS": b"\x15\3\1\0\2\2\x28",
        "a greeting of SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
        "an answer of ICY": b"ICY 200 OK\r\n\r\n" + NOISE,
        # statuses
        "status 000": b"HTTP/1.1 000 Zero\r\nContent-Length: 2\r\n\r\n{}",
        "status 99": b"HTTP/1.1 99 Low\r\nContent-Length: 2\r\n\r\n{}",
        "status 1000": b"HTTP/1.1 1000 High\r\nContent-Length: 2\r\n\r\n{}",
        "status -200": b"HTTP/1.1 -200 OK\r\nContent-Length: 2\r\n\r\n{}",
        "status 2OO": b"HTTP/1.1 2OO OK\r\nContent-Length: 2\r\n\r\n{}",
        "status 200 in Arabic digits": "HTTP/1.1 ٢٠٠ OK\r\nContent-Length: 2\r\n\r\n{}".encode(),
        "status 999": sized(BODY, "999 Odd"),
        "status 204 with a body": sized(BODY, "204 No Content"),
        "status 304": sized(b"", "304 Not Modified"),
        "status 101": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n" + NOISE,
        "status 100 for ever": Hostile(b"", "repeat", (b"HTTP/1.1 100 Continue\r\n\r\n" * 100,)),
        "status 100 with odd headers for ever": Hostile(
            b"", "repeat", (b"HTTP/1.1 100 Continue\r\nX y: z\r\n\r\n" * 100,)
        ),
        "status 199 for ever": Hostile(b"", "repeat", (b"HTTP/1.1 199 Soon\r\n\r\n" * 100,)),
        # waits
        **{
            f"a wish to wait until {name}": sized(b"", "429 Busy", b"Retry-After: " + wish)
            for name, wish in {
                "for ever": b"9" * 5000,
                "infinity": b"inf",
                "before now": b"-5",
                "the year 0": b"Sat, 01 Jan 0000 00:00:00 -0000",
                "the year 9999": b"Fri, 31 Dec 9999 23:59:59 -2359",
                "a date that is none": b"Thu, 99 Foo 2026 99:99:99 +999999999999",
                "a date without a zone": b"Mon, 01 Jan 0001 00:00:00 -0000",
                "bytes that are not ASCII": "٥".encode() + b"\xff",
            }.items()
        },
        # places to go to
        **{
            f"a redirect to {name}": sized(b"", "302 Found", b"Location: " + place)
            for name, place in {
                "half an address": b"http://[::1",
                "a file": b"file:///etc/passwd",
                "nowhere": b"",
                "a port that is none": b"http://h:99999999/",
                "a megabyte": b"http://h/" + b"x" * 60_000,
                "bytes that are not UTF-8": b"http://\xff\xfe/\xc3\x28",
                "a script": b"javascript:alert(1)",
                "a host with NUL": b"http://a\0b/",
            }.items()
        },
        "a redirect without a place": sized(b"", "302 Found"),
        # time
        "a slow drip without an end": Hostile(headers(b"Content-Length: 99999"), "repeat", (b" ",)),
    }.items()
}

BODIES: dict[str, bytes] = {
    name: answer if answer.startswith(b"HTTP/") else sized(answer)
    for name, answer in {
        "no body": b"",
        "null": b"null",
        "NaN": b"NaN",
        "a number": b"5",
        "a number of 5,000 digits": b"9" * 5000,
        "a text": b'"hello"',
        "a list": b"[]",
        "a list 100,000 deep": b"[" * 100_000 + b"]" * 100_000,
        "an object 100,000 deep": b'{"choices":' * 100_000 + b"1" + b"}" * 100_000,
        "half an object": BODY[:-7],
        "an object and more": BODY + BODY,
        "a body with NUL": b"\0" + BODY,
        "UTF-8 that is broken": said("x").replace(b"x", b"\xff\xc3\x28"),
        "UTF-16 that is cut": BODY.decode().encode("utf-16")[:-1],
        "an HTML page": b"<!DOCTYPE html><title>Log in</title>",
        "an object without choices": b"{}",
        "the same key twice": BODY[:-1] + b', "choices": []}',
        "choices that are null": b'{"choices": null}',
        "choices that are a text": b'{"choices": "abc"}',
        "choices that are an object": b'{"choices": {"0": {"message": {"content": "x"}}}}',
        "choices that are a number": b'{"choices": 1e400}',
        "a choice that is null": b'{"choices": [null]}',
        "a choice that is a list": b'{"choices": [[]]}',
        "a message that is missing": b'{"choices": [{}]}',
        "a message that is null": b'{"choices": [{"message": null}]}',
        "a message that is a text": b'{"choices": [{"message": "x"}]}',
        "a message that is a list": b'{"choices": [{"message": ["x"]}]}',
        "a content that is a number": said(5),
        "a content that is NaN": said(float("nan")),
        "a content that is true": said(True),
        "a content that is an object": said({"text": "x"}),
        "a content of numbers": said([1, 2]),
        "a content of parts without texts": said([{"text": None}]),
        "a content of parts whose text is a list": said([{"text": ["x"]}]),
        "an error with status 200": b'{"error": {"message": ["\\ud800", NaN]}}',
        "an error 100,000 deep": sized(b'{"error":' * 100_000, "500 Fault"),
        "an error of half characters": sized(b'{"error": {"message": "\\ud83d \\udc00 \\u0000"}}', "400 Bad"),
        "an error of noise": sized(NOISE, "422 Odd"),
        "a stream that is JSON": sized(BODY, "200 OK", STREAM),
        "a stream of a list": sized(b"data: []\n\n", "200 OK", STREAM),
        "a stream of a number": sized(b"data: 5\n\ndata: [DONE]\n\n", "200 OK", STREAM),
        "a stream that is cut": sized(b'data: {"choices": [{"delta": {"content": "A c', "200 OK", STREAM),
        "a stream without its last piece": sized(b'data: {"choices": [{"delta": {"content": "A"}}]}\n\n', "200 OK", STREAM),
        "a stream whose delta is a text": sized(b'data: {"choices": [{"delta": "x"}]}\n\n', "200 OK", STREAM),
        "a stream whose pieces change their type": sized(
            b'data: {"choices": [{"delta": {"content": "x"}}]}\ndata: {"choices": [{"delta": {"content": {"a": 1}}}]}\n',
            "200 OK", STREAM,
        ),
        "a stream whose numbers are mixed": sized(
            b'data: {"choices": [{"delta": {"content": [{"index": 0}, {"index": "a"}, {"index": []}]}}]}\n', "200 OK", STREAM
        ),
        "a stream 100,000 deep": sized(b'data: {"choices": [{"delta": {"a": ' + b"[" * 100_000, "200 OK", STREAM),
        "a stream with an error": sized(b'data: {"error": {"message": "\\ud800"}}\n\n', "200 OK", STREAM),
        "a stream in place of JSON, unnamed": b'data: {"choices": [{"delta": {"content": "A"}}]}\n\ndata: [DONE]\n\n',
    }.items()
}  # fmt: skip

TYPICAL = {
    "a chunk of a negative size",
    "a chunk of a negative size larger than memory",
    "two lengths",
    "gzip that is none",
    "six encodings",
    "nothing, and a reset",
    "5,000 headers",
    "noise",
    "the preface of HTTP/2",
    "status 1000",
    "a wish to wait until the year 0",
    "a redirect to half an address",
    "a list 100,000 deep",
    "a content of numbers",
    "a stream whose pieces change their type",
}
"""A few of each kind, for tests that all the others would make slow."""


def head_of(file: BinaryIO) -> bytes:
    """Return the head of the next request; nothing if the client has gone."""
    head = b""
    while line := file.readline():
        head += line
        if line == b"\r\n":
            return head
    return b""


class Server(NamedTuple):
    """Where the server is, and the bodies of the requests that came."""

    port: int
    bodies: list[bytes]


@contextmanager
def serving(hostile: Hostile) -> Iterator[Server]:
    """Give a server that answers requests with ``MARK`` in them with ``hostile``, and all others with ``GOOD``."""
    over = threading.Event()
    threads: list[threading.Thread] = []
    opened: list[socket.socket] = []
    bodies: list[bytes] = []

    def start(target: Callable[..., None], *arguments: object) -> None:
        threads.append(threading.Thread(target=target, args=arguments, daemon=True))
        threads[-1].start()

    def accept() -> None:
        with suppress(OSError):  # the end of the block closes the listener
            while True:
                connection, _ = listener.accept()
                opened.append(connection)
                start(serve, connection)

    def serve(connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rb") as file:  # the client may go at any time
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while head := head_of(file):
                size = [int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                body = file.read(size[0] if size else 0)
                bodies.append(body)
                if MARK in head + body:
                    give(connection, file)
                    return
                connection.sendall(GOOD)

    def give(connection: socket.socket, file: BinaryIO) -> None:
        connection.sendall(hostile.data, WITH_THE_END if hostile.then == "close" else 0)
        if hostile.then == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            return
        while hostile.then == "repeat" and not over.wait(0.001):
            connection.sendall(hostile.pieces[-1])
        if hostile.then == "close":
            connection.shutdown(socket.SHUT_WR)
        file.read()  # until the client goes: to close with unread bytes would be a reset

    with socket.create_server(("127.0.0.1", 0), backlog=50) as listener:
        start(accept)
        try:
            yield Server(listener.getsockname()[1], bodies)
        finally:
            over.set()
            for sock in (listener, *opened):
                with suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join(20)
