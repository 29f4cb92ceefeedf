"""``mmprompt serve``'s server as runners ask it: OpenAI's API on the loopback address, and nothing else."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from readme_blocks import ROOT

from mmprompt import load_task
from mmprompt.errors import ServerError
from mmprompt.run import server as module
from mmprompt.run.client import ChatClient
from mmprompt.run.conversation import Asker
from mmprompt.run.reply import Reply
from mmprompt.run.server import ModelServer
from mmprompt.run.shapes.model import ShapesModel

SHAPES = ROOT / "fixtures/shapes"
COLOUR = "What colour is the shape?"


@contextmanager
def served(model: Any) -> Iterator[ModelServer]:
    with ModelServer(model) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def shapes() -> Iterator[ModelServer]:
    with closing(ShapesModel()) as model, served(model) as server:
        yield server


def ask(
    server: ModelServer, body: Any, path: str = "/v1/chat/completions", method: str = "POST", **headers: str
) -> Any:
    """Status and body of the answer to one request; a body that is not bytes is sent as JSON."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    with closing(http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)) as connection:
        connection.request(method, path, data, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read()


def chat(text: str = COLOUR, **more: Any) -> dict[str, Any]:
    return {"model": "builtin:shapes", "messages": [{"role": "user", "content": text}], **more}


def first() -> tuple[dict[str, Any], Any]:
    request = next(load_task(SHAPES / "task.yaml").requests("openai"))
    return {"model": "builtin:shapes", "messages": request.messages}, request.answers[0]


# ---- what runners send


def test_a_request_gets_the_reply_in_openai_s_form(shapes: ModelServer) -> None:
    body, answer = first()
    status, text = ask(shapes, body)
    got = json.loads(text)
    assert status == 200
    assert got["object"] == "chat.completion"
    assert got["model"] == "builtin:shapes"
    assert got["choices"] == [
        {"index": 0, "message": {"role": "assistant", "content": answer}, "finish_reason": "stop", "logprobs": None}
    ]
    assert got["usage"]["total_tokens"] == got["usage"]["prompt_tokens"] + got["usage"]["completion_tokens"] > 1


def test_a_stream_holds_the_same_reply(shapes: ModelServer) -> None:
    body, answer = first()
    status, text = ask(shapes, {**body, "stream": True, "stream_options": {"include_usage": True}})
    assert status == 200
    *events, done, rest = text.decode().split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    chunks = [json.loads(event.removeprefix("data: ")) for event in events]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    said = "".join(c["delta"].get("content", "") for chunk in chunks for c in chunk["choices"])
    assert (said, chunks[2]["choices"][0]["finish_reason"]) == (answer, "stop")
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == 1


def test_openai_s_own_client_reads_replies_streams_and_errors(shapes: ModelServer) -> None:
    openai = pytest.importorskip("openai")
    body, answer = first()
    with openai.OpenAI(base_url=shapes.url, api_key="none", max_retries=0) as client:
        assert [model.id for model in client.models.list()] == ["builtin:shapes"]
        reply = client.chat.completions.create(**body, temperature=0, max_tokens=5)
        assert (reply.choices[0].message.content, reply.usage.completion_tokens) == (answer, 1)
        pieces = [c for chunk in client.chat.completions.create(**body, stream=True) for c in chunk.choices]
        assert "".join(piece.delta.content or "" for piece in pieces) == answer
        with pytest.raises(openai.BadRequestError, match="two questions only") as caught:
            client.chat.completions.create(**chat("How are you?"))
        assert caught.value.code == "MM901"
        with pytest.raises(openai.NotFoundError, match="ask for 'builtin:shapes'"):
            client.chat.completions.create(**{**body, "model": "gpt"})


def test_our_own_client_holds_a_conversation_with_it(shapes: ModelServer) -> None:
    with closing(ChatClient(shapes.url, "builtin:shapes")) as client:
        talk = Asker(client, base=SHAPES).conversation("Answer in one word.")
        assert talk.ask(COLOUR, image="media/shapes-01.png") in ("red", "orange", "yellow", "green", "blue", "purple")
        assert talk.ask("Which shape is this?") == "circle"  # of the picture before


def test_keys_of_other_servers_and_a_missing_model_are_accepted(shapes: ModelServer) -> None:
    body = chat(temperature=0.5, top_k=5, repetition_penalty=1.1, n=1, stop=None)
    del body["model"]
    assert ask(shapes, body)[0] == 200


# ---- what is refused


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 400, "not JSON"),
        (b"", 400, "not JSON"),
        (b"[" * 100_000, 400, "not JSON"),
        (b'{"messages": NaN}', 400, "not JSON"),
        (b"[]", 400, "not a JSON object"),
        ({}, 400, "messages are NoneType"),
        ({"messages": "hello"}, 400, "messages are str"),
        ({"messages": []}, 400, "messages is empty"),
        ({"messages": [{"content": "x"}]}, 400, "message 1: the message has no role"),
        (chat("Hello"), 400, "two questions only"),
        (chat(n=2), 400, "n is '2'"),
        (chat() | {"model": "other"}, 404, "the model 'other' is not served here"),
        (chat() | {"model": ["other"]}, 404, "is not served here"),
    ],
)  # fmt: skip
def test_a_bad_body_is_answered_in_openai_s_form(shapes: ModelServer, body: Any, status: int, words: str) -> None:
    got, text = ask(shapes, body)
    error = json.loads(text)["error"]
    assert (got, error["type"], error["param"]) == (status, "invalid_request_error", None)
    assert words in error["message"]


@pytest.mark.parametrize(
    "source", ["file:///etc/hostname", "/etc/hostname", "http://127.0.0.1:{port}/v1/models", "x.png"]
)
def test_a_name_is_neither_opened_nor_fetched(shapes: ModelServer, source: str) -> None:
    url = source.format(port=shapes.server_port)
    parts = [{"type": "text", "text": COLOUR}, {"type": "image_url", "image_url": {"url": url}}]
    status, text = ask(shapes, chat() | {"messages": [{"role": "user", "content": parts}]})
    assert status == 400
    assert "is not opened; send it as a data URI" in json.loads(text)["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v1/chat/completions", 404),
        ("POST", "/v1/completions", 404),
        ("POST", "/v1/models", 404),
        ("DELETE", "/v1/models", 501),
    ],
)
def test_an_unknown_path_or_method_is_told(shapes: ModelServer, method: str, path: str, status: int) -> None:
    got, text = ask(shapes, {} if method == "POST" else None, path, method)
    assert got == status
    assert json.loads(text)["error"]["message"]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "[", ""])
def test_a_page_whose_name_leads_here_is_refused(shapes: ModelServer, host: str) -> None:
    status, text = ask(shapes, None, "/v1/models", "GET", Host=host)
    assert (status, b"builtin:shapes" in text) == (403, False)


@pytest.mark.parametrize(
    "header",
    [
        "Host: evil.example",
        *[f"Host: localhost\r\nOrigin: {o}" for o in ("https://evil.example", "null", "http://localhost:1", "")],
    ],
)
def test_a_page_is_refused_before_a_body_is_read(shapes: ModelServer, header: str) -> None:
    with socket.create_connection(("127.0.0.1", shapes.server_port), timeout=5) as page:
        page.sendall(f"POST /v1/chat/completions HTTP/1.1\r\n{header}\r\nContent-Length: 1000\r\n\r\n".encode())
        answer = page.makefile("rb").read()  # to the end: the server waits for nothing and closes
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"; ask " in answer


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_request_from_the_servers_own_address_is_answered(shapes: ModelServer, name: str) -> None:
    assert ask(shapes, chat(), Origin=f"http://{name}:{shapes.server_port}")[0] == 200


def test_a_body_has_a_length_and_a_bound(shapes: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_BODY", 1000)
    assert ask(shapes, b"x" * 20_000_000)[0] == 413  # more than the buffers of a connection hold
    with closing(http.client.HTTPConnection("127.0.0.1", shapes.server_port, timeout=20)) as connection:
        connection.request("POST", "/v1/chat/completions", iter([b"x" * 100_000] * 50), encode_chunked=True)
        assert connection.getresponse().status == 411


def test_a_fault_of_the_model_is_an_answer_too() -> None:
    class Broken:
        name, concurrency = "broken", 1

        def reply(self, messages: Any, options: Any) -> Reply:
            raise ZeroDivisionError

    with served(Broken()) as server:
        status, text = ask(server, {"messages": [{"role": "user", "content": "x"}]})
        assert status == 500
        assert json.loads(text)["error"]["message"] == "the server failed (ZeroDivisionError)"


def test_a_port_that_is_taken_or_none_is_told(shapes: ModelServer) -> None:
    for port in (shapes.server_port, 70000):
        with pytest.raises(ServerError, match=f"port {port} cannot be used") as caught:
            ModelServer(ShapesModel(), port)
        assert "--port" in caught.value.hint


# ---- several at once


def test_no_more_calls_than_the_model_takes_and_options_arrive() -> None:
    class Counting:
        name, concurrency = "counting", 2

        def __init__(self) -> None:
            self.now = self.most = 0
            self.lock = threading.Lock()
            self.both = threading.Barrier(2)

        def reply(self, messages: Any, options: Any) -> Reply:
            with self.lock:
                self.now += 1
                self.most = max(self.most, self.now)
            self.both.wait(20)
            with self.lock:
                self.now -= 1
            return Reply(f"{messages[0].text} {options}", "length")

    model = Counting()
    with served(model) as server:
        found: list[Any] = []
        body = {"messages": [{"role": "user", "content": "x"}], "seed": 5, "stream": False}
        threads = [threading.Thread(target=lambda: found.append(ask(server, body))) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert model.most == 2
    choices = [json.loads(text)["choices"][0] for status, text in found if status == 200]
    assert [(c["message"]["content"], c["finish_reason"]) for c in choices] == [("x {'seed': 5}", "length")] * 6


def test_a_client_that_goes_away_does_no_harm(shapes: ModelServer) -> None:
    with socket.create_connection(("127.0.0.1", shapes.server_port)) as gone:
        gone.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
    with socket.create_connection(("127.0.0.1", shapes.server_port)) as odd:
        odd.sendall(b"nonsense\r\n\r\n")
        assert b"error" in odd.makefile("rb").read()
    assert ask(shapes, chat())[0] == 200
