"""Answers read from a socket: plain ones at once, all others as urllib3 reads them."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from time_taken import GENEROUS

from mmprompt import ServerError
from mmprompt.media.fetch.retries import PassingError
from mmprompt.run.client import ChatClient
from mmprompt.run.plain_answer import plain_answer

BODY = json.dumps({"choices": [{"message": {"content": "A cat."}, "finish_reason": "stop"}]}).encode()
SIZED = b"Content-Length: %d\r\n" % len(BODY)
OK = b"HTTP/1.1 200 OK\r\n"
PLAIN = OK + b"Server: uvicorn\r\n" + SIZED + b"\r\n" + BODY
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
PACKED = gzip.compress(BODY)

ANSWERS = {
    "plain": PLAIN,
    "kept alive": OK + b"Connection: Keep-Alive\r\n" + SIZED + b"\r\n" + BODY,
    "chunks": CHUNKED,
    "compressed": OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(PACKED) + PACKED,
    "continued": b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN,
    "hinted early": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + PLAIN,
    "line feeds": PLAIN.replace(b"\r", b""),
    "twice the length": OK + SIZED + SIZED + b"\r\n" + BODY,
    "cookies": OK + b"Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n" + SIZED + b"\r\n" + BODY,
    "closed": OK + b"Connection: close\r\n" + SIZED + b"\r\n" + BODY,
    "old": b"HTTP/1.0 200 OK\r\n" + SIZED + b"\r\n" + BODY,
    "without a length": OK + b"X: y\r\n\r\n" + BODY,
    "more than its length": PLAIN + b"HTTP/1.1 200 OK\r\n",
}
ENDING = ("closed", "old", "without a length")
"""Those after which the server ends the connection."""


@pytest.mark.parametrize("name", ["plain", "kept alive"])
def test_a_plain_answer_is_whole_at_its_last_byte(name: str) -> None:
    whole = ANSWERS[name]
    assert [plain_answer(whole[:size]) for size in range(len(whole))] == [(None, True)] * len(whole)
    answer, _ = plain_answer(whole)
    assert answer is not None
    assert (answer.status, b"".join(answer.stream(1)), answer.headers.get("CONTENT-length")) == (
        200,
        BODY,
        str(len(BODY)),
    )


@pytest.mark.parametrize("name", [name for name in ANSWERS if name not in ("plain", "kept alive")])
def test_any_other_answer_is_left_to_urllib3(name: str) -> None:
    assert plain_answer(ANSWERS[name]) == (None, False)


@pytest.mark.parametrize(
    "received", [b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", b"<html>\r\n\r\n", b"x" * (1 << 16),
                 OK + b"Content-Length: +1\r\n\r\na", OK + b"Content-Length: 99999999\r\n\r\n", OK + b"\xff: 1\r\n\r\n",
                 b"SSH-2.0-OpenSSH_9.2\r\n", b"220 mail", OK + b"X: y\n\r\n"]
)  # fmt: skip
def test_what_is_odd_is_left_to_urllib3(received: bytes) -> None:
    assert plain_answer(received) == (None, False)


def pieces(answer: bytes, size: int) -> Iterator[bytes]:
    """Yield an answer in pieces. What is more than its length comes with its last byte: later it is the next answer's."""
    end = len(PLAIN) - 1 if answer.startswith(PLAIN) else len(answer)
    yield from (answer[start : min(start + size, end)] for start in range(0, end, size))
    yield answer[end:]


@contextmanager
def serving(answer: bytes, size: int, count: int) -> Iterator[tuple[str, list[int]]]:
    """Give an answer in pieces of ``size`` bytes to ``count`` requests, and note the connection of each."""
    connections: list[int] = []

    def serve(listener: socket.socket) -> None:
        opened = 0
        while len(connections) < count:
            connection, _ = listener.accept()
            opened += 1
            with connection, connection.makefile("rb") as file:
                while len(connections) < count and (head := read_head(file)):
                    file.read(int(head[b"content-length"]))
                    connections.append(opened)
                    for piece in pieces(answer, size):
                        connection.sendall(piece)
                    if any(answer == ANSWERS[name] for name in ENDING):
                        break

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(GENEROUS)
        thread = threading.Thread(target=serve, args=[listener], daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", connections
        thread.join(GENEROUS)


def read_head(file: object) -> dict[bytes, bytes]:
    lines = iter(file.readline, b"\r\n")  # type: ignore[attr-defined]
    pairs = [line.lower().split(b": ", 1) for line in lines if line] if file.peek(1) else []  # type: ignore[attr-defined]
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("size", [7, 1 << 16])
def test_each_answer_is_read_and_its_connection_used_again_where_it_can_be(name: str, size: int) -> None:
    with (
        serving(ANSWERS[name], size, 3) as (base_url, connections),
        closing(ChatClient(base_url, "m", timeout=GENEROUS, attempts=1)) as client,
    ):
        assert [client.ask([]) for _ in range(3)] == ["A cat."] * 3
        assert connections == ([1, 2, 3] if name in (*ENDING, "more than its length") else [1, 1, 1])


def test_a_server_that_takes_a_request_slowly_is_given_up_in_time() -> None:
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 15)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                for _ in range(2000):
                    if ended.wait(0.005) or not connection.recv(1 << 15):
                        return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        client = ChatClient(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", "m", timeout=0.5, attempts=1)
        begun = time.monotonic()
        with closing(client), pytest.raises(PassingError, match=r"gave no answer within 0\.5 s"):
            client.reply([bytes(1 << 20)] * 60)
        assert time.monotonic() - begun < 3
        ended.set()
        thread.join(GENEROUS)


def test_an_answer_that_breaks_off_in_its_body_is_told() -> None:
    cut = OK + SIZED + b"\r\n" + BODY[:9]
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as file:
                file.read(int(read_head(file)[b"content-length"]))
                connection.sendall(cut)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        client = ChatClient(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", "m", timeout=GENEROUS, attempts=1)
        with closing(client), pytest.raises(ServerError, match="broke off its answer"):
            client.ask([])
        thread.join(GENEROUS)
