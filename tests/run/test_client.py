"""The client against servers that answer, refuse, break off, redirect and lie."""

from __future__ import annotations

import json
import logging
import pickle
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from types import SimpleNamespace
from typing import Any

import loopback
import pytest
from time_taken import GENEROUS, wait_until

from mmprompt import MediaPart, Message, ServerError, TargetError, TextPart
from mmprompt.run import client as client_module
from mmprompt.run.client import ChatClient
from mmprompt.run.reply import Reply

KEY = "sk-very-secret"
ASKED = [Message("SYSTEM", "Be brief."), Message("HUMAN", [MediaPart("image", "image/png", b"\x89PNG"), TextPart("?")])]
GOOD = {"choices": [{"message": {"content": "A cat."}, "finish_reason": "stop"}], "usage": {"total_tokens": 3}}


class Server:
    def __init__(self, answers: list[Any]) -> None:
        self.answers = answers
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.base_url = ""


@contextmanager
def serving(*answers: Any) -> Iterator[Server]:
    """A server that gives these answers in turn, the last for ever: (status, headers, body) or what is called."""
    record = Server(list(answers))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            record.requests.append((self.path, dict(self.headers), body))
            answer = record.answers.pop(0) if len(record.answers) > 1 else record.answers[0]
            if callable(answer):
                answer(self)
                return
            status, headers, value = answer
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            for name, header in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, header)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with loopback.serving(Handler) as port:
        record.base_url = f"http://127.0.0.1:{port}/v1"
        yield record


def ok() -> tuple[int, dict[str, str], Any]:
    return 200, {}, GOOD


def break_off(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


@contextmanager
def asking(server: Server, **options: Any) -> Iterator[ChatClient]:
    client = ChatClient(server.base_url, "m", **{"api_key": KEY, "timeout": 30, **options})
    try:
        yield client
    finally:
        client.close()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited: list[float] = []
    # the name of the client alone: other threads go on sleeping
    monkeypatch.setattr(client_module, "time", SimpleNamespace(sleep=waited.append, monotonic=time.monotonic))
    return waited


def test_messages_go_out_and_the_reply_comes_back() -> None:
    with serving(ok()) as server, asking(server) as client:
        reply = client.ask(ASKED, temperature=0, max_tokens=5)
    assert (reply, reply.finish_reason, reply.usage) == ("A cat.", "stop", {"total_tokens": 3})
    [(path, headers, body)] = server.requests
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert headers["Content-Type"] == "application/json"
    assert json.loads(body) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
                    {"type": "text", "text": "?"},
                ],
            },
        ],
        "temperature": 0,
        "max_tokens": 5,
    }


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": None, "tool_calls": [{"id": "c"}]}, ""),
        ({"content": None, "refusal": "I cannot."}, "I cannot."),
        ({"content": "A cat.", "reasoning_content": "Whiskers."}, "A cat."),
        ({"content": [{"type": "text", "text": "A "}, {"type": "text", "text": "cat"}]}, "A cat"),
    ],
)
def test_a_reply_is_its_text_and_keeps_what_is_beside(message: Any, text: str) -> None:
    with serving((200, {}, {"choices": [{"message": message}]})) as server, asking(server) as client:
        reply = client.ask(ASKED)
    assert (reply, reply.message) == (text, message)


def test_a_reply_pickles_with_what_is_beside_it() -> None:
    reply = pickle.loads(pickle.dumps(Reply("A cat.", "stop", {"total_tokens": 3}, {"content": "A cat."})))
    assert (reply, reply.finish_reason, reply.usage) == ("A cat.", "stop", {"total_tokens": 3})
    assert reply.message == {"content": "A cat."}


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
def test_what_may_pass_is_tried_again_with_full_jitter(status: int, pauses: list[float]) -> None:
    with serving((status, {}, {}), (status, {}, {}), ok()) as server, asking(server) as client:
        assert client.ask(ASKED) == "A cat."
    assert len(server.requests) == 3
    assert 0 <= pauses[0] <= 0.5
    assert 0 <= pauses[1] <= 1


def test_a_broken_connection_is_tried_again(pauses: list[float]) -> None:
    with serving(break_off, ok()) as server, asking(server) as client:
        assert client.ask(ASKED) == "A cat."
    assert len(pauses) == 1


def test_a_tls_connection_that_is_cut_is_tried_again(pauses: list[float]) -> None:
    came: list[bytes] = []

    def cut_off(listening: socket.socket) -> None:
        for _ in range(2):
            connection, _ = listening.accept()
            with connection:
                came.append(connection.recv(1 << 16))  # all of the client's first message

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(GENEROUS)
        thread = threading.Thread(target=cut_off, args=(listening,))
        thread.start()
        client = ChatClient(f"https://127.0.0.1:{listening.getsockname()[1]}/v1", "m", attempts=2, timeout=30)
        with pytest.raises(ServerError, match=r"broke off the TLS connection \(2 attempts\)"):
            client.ask(ASKED)
        thread.join()
    assert len(came) == 2


def test_a_server_without_tls_is_told_at_once(pauses: list[float]) -> None:
    with serving(ok()) as server:
        client = ChatClient(server.base_url.replace("http://", "https://"), "m", timeout=30)
        with pytest.raises(ServerError, match="speaks no TLS; check the address: https:// or http://"):
            client.ask(ASKED)
    assert not pauses


def cut(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices"')
    break_off(handler)


def test_a_body_that_is_cut_is_tried_again(pauses: list[float]) -> None:
    with serving(cut, ok()) as server, asking(server) as client:
        assert client.ask(ASKED) == "A cat."
    assert len(pauses) == 1


def test_a_server_that_breaks_off_its_answers_is_there(pauses: list[float]) -> None:
    with serving(cut) as server, asking(server, attempts=2) as client:
        for _ in range(2):
            with pytest.raises(ServerError, match=r"broke off its answer \(2 attempts\); look into its log"):
                client.ask(ASKED)
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"Retry-After": "7"}, 7.0, 7.0),
        ({"Retry-After": "2.5"}, 2.5, 2.5),
        ({"Retry-After": ".75"}, 0.75, 0.75),
        ({"retry-after-ms": "1500"}, 1.5, 1.5),
        ({"retry-after-ms": "1500", "Retry-After": "9"}, 1.5, 1.5),
        ({"retry-after-ms": "soon", "Retry-After": "9"}, 9.0, 9.0),
        ({"Retry-After": "-1"}, 0.0, 0.5),
        ({"Retry-After": "1e9"}, 0.0, 0.5),
        ({"Retry-After": "nan"}, 0.0, 0.5),
    ],
)
def test_a_server_may_say_how_long_to_wait(
    headers: dict[str, str], least: float, most: float, pauses: list[float]
) -> None:
    with serving((429, headers, {}), ok()) as server, asking(server) as client:
        client.ask(ASKED)
    [pause] = pauses
    assert least <= pause <= most


def test_a_server_may_say_until_when_to_wait(pauses: list[float]) -> None:
    date = formatdate(time.time() + 100, usegmt=True)
    with serving((429, {"Retry-After": date}, {}), ok()) as server, asking(server) as client:
        client.ask(ASKED)
    assert 60 < pauses[0] <= 100


def test_a_server_that_asks_for_hours_is_not_waited_for(pauses: list[float]) -> None:
    with (
        serving((429, {"Retry-After": "7200"}, {})) as server,
        asking(server) as client,
        pytest.raises(ServerError, match=r"answers 429 \(Too Many Requests\)"),
    ):
        client.ask(ASKED)
    assert pauses == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_what_will_not_pass_is_not_tried_again(status: int, pauses: list[float]) -> None:
    refusal = {"error": {"message": f"no, {KEY} is not known\x1b[31m"}}
    with (
        serving((status, {}, refusal)) as server,
        asking(server) as client,
        pytest.raises(ServerError, match=f"answers {status}") as caught,
    ):
        client.ask(ASKED)
    assert len(server.requests) == 1
    assert "no, <key> is not known\\x1b[31m" in str(caught.value)
    assert KEY not in str(caught.value)
    assert pauses == []


def test_a_key_at_the_end_of_what_is_shown_is_hidden_whole() -> None:
    with (
        serving((400, {}, b"x" * 295 + KEY.encode())) as server,
        asking(server) as client,
        pytest.raises(ServerError) as caught,
    ):
        client.ask(ASKED)
    assert KEY[:4] not in str(caught.value)


def test_tries_end(pauses: list[float]) -> None:
    with (
        serving((503, {}, b"busy")) as server,
        asking(server, attempts=3) as client,
        pytest.raises(ServerError, match=r"answers 503 \(Service Unavailable\): 'busy' \(3 attempts\)"),
    ):
        client.ask(ASKED)
    assert len(server.requests) == 3
    assert len(pauses) == 2


def test_a_server_that_is_not_there(pauses: list[float]) -> None:
    with socket.socket() as held:  # bound, and nobody listens: no other program opens it meanwhile
        held.bind(("127.0.0.1", 0))
        client = ChatClient(f"http://127.0.0.1:{held.getsockname()[1]}/v1", "m", attempts=2)
        with pytest.raises(ServerError, match=r"cannot be reached \(2 attempts\); start the server"):
            client.ask(ASKED)


def test_a_server_that_is_not_there_is_tried_once_from_then_on_until_it_is(pauses: list[float]) -> None:
    with (
        serving(break_off, break_off, break_off, ok(), break_off, ok()) as server,
        asking(server, attempts=2) as client,
    ):
        with pytest.raises(ServerError, match=r"ended the connection without an answer \(2 attempts\); "):
            client.ask(ASKED)
        with pytest.raises(ServerError, match="ended the connection without an answer; "):
            client.ask(ASKED)
        assert len(pauses) == 1
        assert client.ask(ASKED) == "A cat."
        assert client.ask(ASKED) == "A cat."
        assert len(pauses) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="a full queue of connections is Linux's way not to answer")
def test_a_host_that_does_not_answer_is_not_waited_for_as_long_as_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_LONGEST_CONNECT", 0.3)
    with socket.socket() as deaf, ExitStack() as queue:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for _ in range(4):
            waiting = queue.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(deaf.getsockname())
        client = ChatClient(f"http://127.0.0.1:{deaf.getsockname()[1]}/v1", "m", attempts=1, timeout=60)
        start = time.monotonic()
        with pytest.raises(ServerError, match="cannot be reached"):
            client.ask(ASKED)
        assert time.monotonic() - start < 20


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed_and_no_key_goes_there(status: int) -> None:
    with (
        serving(ok()) as other,
        serving((status, {"Location": f"{other.base_url}/x?token=1"}, {})) as server,
        asking(server) as client,
        pytest.raises(ServerError) as caught,
    ):
        client.ask(ASKED)
    assert other.requests == []
    assert f"leads to {other.base_url}/x; give that address as the base URL" in str(caught.value)


def test_a_redirect_that_leads_nowhere_is_an_ordinary_refusal() -> None:
    with (
        serving((304, {}, {})) as server,
        asking(server) as client,
        pytest.raises(ServerError, match=r"answers 304 \(Not Modified\)$"),
    ):
        client.ask(ASKED)


def test_a_body_of_thousands_of_pieces_arrives_whole() -> None:
    texts = [f"{number} " * 40 for number in range(3000)]
    body = json.dumps({"messages": texts}).encode()
    pieces = [body[start : start + 97] for start in range(0, len(body), 97)] + [b""]
    with serving(ok()) as server, asking(server) as client:
        assert client.reply(pieces) == "A cat."
    assert server.requests[0][2] == body


def slow_answer(head: bytes, piece: bytes) -> Callable[[BaseHTTPRequestHandler], None]:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        with suppress(OSError):  # the client has gone
            handler.wfile.write(head)
            while not handler.server.over.wait(0.01):  # type: ignore[attr-defined]
                handler.wfile.write(piece)

    return drip


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"", b""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" "),  # as servers do while a model thinks
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n\n\r\n"),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 100000\r\n\r\n", b" "),
        (b"HTTP/1.1 200 OK\r\nX-Y: ", b"z"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
)
def test_an_answer_that_takes_too_long_ends(head: bytes, piece: bytes) -> None:
    with serving(slow_answer(head, piece)) as server, asking(server, timeout=0.3, attempts=1) as client:
        begun = time.monotonic()
        with pytest.raises(ServerError, match=r"gave no answer within 0\.3 s"):
            client.ask(ASKED)
        assert time.monotonic() - begun < 10
        assert wait_until(lambda: server.requests)  # what was sent in time may be read later
    assert len(server.requests) == 1


@contextmanager
def reading_late(begin: threading.Event) -> Iterator[str]:
    """A server that takes the first request only when it may ``begin``; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(GENEROUS)  # nobody comes where the client fails before

        def serve() -> None:
            with suppress(OSError):
                connection, _ = listener.accept()
                connection.settimeout(GENEROUS)
                begin.wait(GENEROUS)
                with connection, connection.makefile("rb") as stream:
                    size = 0
                    while line := stream.readline().strip():
                        if line.lower().startswith(b"content-length:"):
                            size = int(line.partition(b":")[2])
                    stream.read(size)
                    body = json.dumps(GOOD).encode()
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            begin.set()
            thread.join()


LARGE = [Message("HUMAN", "x" * (24 << 20))]
"""More than the buffers of a connection on this host hold."""


def test_a_request_may_take_longer_to_send_than_a_host_to_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_LONGEST_CONNECT", 0.2)
    begin = threading.Event()
    with reading_late(begin) as address:
        later = threading.Timer(0.8, begin.set)
        later.start()
        assert ChatClient(address, "m", timeout=20, attempts=1).ask(LARGE) == "A cat."


def test_a_request_that_nobody_takes_ends() -> None:
    with (
        reading_late(threading.Event()) as address,
        pytest.raises(ServerError, match=r"gave no answer within 0\.4 s; raise the timeout"),
    ):
        ChatClient(address, "m", timeout=0.4, attempts=1).ask(LARGE)


def test_an_answer_through_a_proxy_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = slow_answer(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" ")
    with serving(slow) as proxy:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, proxy.base_url.removesuffix("/v1"))
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        client = ChatClient("http://model.example/v1", "m", timeout=0.3, attempts=1)
        begun = time.monotonic()
        with pytest.raises(ServerError, match=r"gave no answer within 0\.3 s"):
            client.ask(ASKED)
        assert time.monotonic() - begun < 10
        assert wait_until(lambda: proxy.requests)  # what was sent in time may be read later
        client.close()
    [(path, _, _)] = proxy.requests
    assert path == "http://model.example/v1/chat/completions"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>", ": '<html>'; check that the base URL"),
        (b"[]", r": '\[\]'"),
        (b"null", ": 'null'"),
        (b'{"choices": []}', ": .*choices"),
        (b'{"choices": [{"message": null}]}', "null"),
        (b'{"choices": [{"message": {"content": {"text": "a"}}}]}', ": .*message"),
        (b'{"error": {"message": "the model is loading"}}', ": 'the model is loading'"),
        (f'{{"error": "no {KEY}"}}'.encode(), ": 'no <key>'"),
        (b"[" * 100_000, r": '\[\[\["),
        (b"\xff", ": '\ufffd'"),
    ],
)
def test_an_answer_that_holds_no_reply(body: bytes, said: str) -> None:
    with (
        serving((200, {}, body)) as server,
        asking(server, attempts=1) as client,
        pytest.raises(ServerError, match=f"gave an answer without a reply.*{said}") as caught,
    ):
        client.ask(ASKED)
    assert KEY not in str(caught.value)


def test_an_endless_answer_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_LONGEST_REPLY", 1000)
    with (
        serving((200, {}, b" " * 100_000)) as server,
        asking(server) as client,
        pytest.raises(ServerError, match="is longer than"),
    ):
        client.ask(ASKED)


def test_netrc_and_cookies_stay_at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login me password hidden\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with serving((200, {"Set-Cookie": "a=b"}, GOOD), ok()) as server:
        for key, times in ((KEY, 2), (None, 1)):
            with asking(server, api_key=key) as client:
                for _ in range(times):
                    client.ask(ASKED)
    assert [headers.get("Authorization") for _, headers, _ in server.requests] == [f"Bearer {KEY}"] * 2 + [None]
    assert not any("Cookie" in headers for _, headers, _ in server.requests)


def test_the_key_is_in_no_log_and_no_repr(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), serving((500, {}, {}), ok()) as server, asking(server) as client:
        client.ask(ASKED)
        assert KEY not in repr(vars(client)) + repr(client)
    assert caplog.records
    assert KEY not in caplog.text


def test_one_connection_a_thread_is_kept_open() -> None:
    ports: list[int] = []

    def note(handler: BaseHTTPRequestHandler) -> None:
        ports.append(handler.client_address[1])
        data = json.dumps(GOOD).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    with serving(note) as server, asking(server) as client:
        for _ in range(2):
            client.ask(ASKED)
        other = threading.Thread(target=client.ask, args=(ASKED,))
        other.start()
        other.join()
    assert ports[0] == ports[1] != ports[2]


@pytest.mark.parametrize(
    "base_url",
    [
        "",
        "localhost:8000/v1",
        "ftp://h/v1",
        "http://",
        "http://me:pw@h/v1",
        "http://h/v1?key=pw",
        "http://h:99999/v1",
        "http://h:0/v1",
        "http://h /v1",
    ],
)
def test_what_is_no_address_of_an_api(base_url: str) -> None:
    with pytest.raises(ServerError) as caught:
        ChatClient(base_url, "m")
    assert "pw" not in str(caught.value)


def test_the_whole_address_of_the_endpoint_is_taken_too() -> None:
    assert ChatClient("http://h/v1/chat/completions", "m").base_url == "http://h/v1"


def test_what_the_client_says_itself_is_no_option() -> None:
    client = ChatClient("http://h/v1", "m")
    for name in ("model", "n", "timeout", "extra_body", "extra_headers"):
        with pytest.raises(ServerError, match=f"{name} is not an option of a request; "):
            client.ask(ASKED, **{name: 1})
    for value in (float("nan"), [float("-inf")]):
        with pytest.raises(ServerError, match="temperature holds NaN or infinity, which JSON does not have; "):
            client.ask(ASKED, temperature=value)
    with pytest.raises(ServerError, match="no model is given"):
        ChatClient("http://h/v1", "")
    with pytest.raises(ServerError, match="target anthropic does not use OpenAI's API"):
        ChatClient("http://h/v1", "m", target="anthropic")
    with pytest.raises(TargetError):
        ChatClient("http://h/v1", "m", target="vlm")
