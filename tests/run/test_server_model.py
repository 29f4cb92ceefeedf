"""A server as a run asks it: one attempt a call, options over the request's own settings, what the answers hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from test_client import Server, break_off, cut, ok, serving, slow_answer

from mmprompt import ServerError, TargetError, load_task
from mmprompt.render.request import Request
from mmprompt.run.model import Answer
from mmprompt.run.server_model import ServerModel


def requests_of(**settings: Any) -> list[Request]:
    task = {
        "dataset": {"rows": [{"id": "a", "question": "Why?"}]},
        "model": {"model": "of-the-task", "generation": settings},
    }
    return list(load_task(task).requests())


@pytest.fixture
def requests() -> list[Request]:
    return requests_of(temperature=0.7, max_tokens=9)


def asked(server: Server, requests: list[Request], /, **options: Any) -> Answer:
    with closing(ServerModel(server.base_url, "m", timeout=5)) as model:
        [answer] = model.ask(requests, options)
    return answer


def test_options_stand_in_place_of_the_requests_own(requests: list[Request]) -> None:
    with serving(ok()) as server:
        answer = asked(server, requests, temperature=0, top_k=5)
    body = json.loads(server.requests[0][2])
    assert body.pop("messages")[-1]["role"] == "user"
    assert body == {"model": "m", "temperature": 0, "max_tokens": 9, "top_k": 5}
    assert answer.reply is not None
    assert (answer.reply, answer.reply.finish_reason, answer.reply.usage) == ("A cat.", "stop", {"total_tokens": 3})
    assert (answer.attempts, answer.error, answer.passing) == (1, None, False)
    assert answer.seconds > 0


def test_one_length_stands_in_place_of_the_other(requests: list[Request]) -> None:
    body = json.loads(requests[0].body("m", {"max_completion_tokens": 3}))
    assert body["max_completion_tokens"] == 3
    assert "max_tokens" not in body


def test_only_openais_form_takes_options() -> None:
    task = {"dataset": {"rows": [{"id": "a", "question": "Why?"}]}, "model": {"generation": {"max_tokens": 5}}}
    [request] = load_task(task).requests("anthropic")
    with pytest.raises(TargetError, match="anthropic takes no options; set them in the task file"):
        request.body("m", {"temperature": 0})


def test_options_that_lose_part_of_a_reply_are_refused(requests: list[Request]) -> None:
    with closing(ServerModel("http://127.0.0.1:9/v1", "m")) as model, pytest.raises(ServerError, match="n is not"):
        model.ask(requests, {"n": 2})


SSE = b"".join(
    [
        b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"A "}}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"content":"cat."},"finish_reason":"stop"}]}\n\n',
        b'data: {"choices":[],"usage":{"total_tokens":3}}\n\n',
        b"data: [DONE]\n\n",
    ]
)


def test_a_reply_may_come_in_pieces(requests: list[Request]) -> None:
    with serving((200, {"Content-Type": "text/event-stream; charset=utf-8"}, SSE)) as server:
        answer = asked(server, requests, stream=True)
    body = json.loads(server.requests[0][2])
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})
    assert answer.reply is not None
    assert (answer.reply, answer.reply.finish_reason, answer.reply.usage) == ("A cat.", "stop", {"total_tokens": 3})


def test_pieces_that_break_off_may_come_whole_next_time(requests: list[Request]) -> None:
    with serving((200, {"Content-Type": "text/event-stream"}, SSE[: SSE.index(b"\n\n") + 2])) as server:
        answer = asked(server, requests, stream=True)
    assert answer.passing
    assert "broke off its answer" in str(answer.error)


@pytest.mark.parametrize(
    ("given", "passing", "hopeless", "after", "kind"),
    [
        ((429, {"Retry-After": "0.2"}, {}), True, False, 0.2, "busy"),
        ((503, {}, b"busy"), True, False, None, "busy"),
        ((500, {"retry-after-ms": "150"}, {}), True, False, 0.15, ""),
        ((408, {}, {}), True, False, None, ""),
        ((200, {}, b"<html>"), True, False, None, ""),
        ((200, {}, {"choices": []}), True, False, None, ""),
        (cut, True, False, None, ""),
        (break_off, True, False, None, "away"),
        ((400, {}, {}), False, False, None, ""),
        ((413, {}, {}), False, False, None, ""),
        ((401, {}, {}), False, True, None, ""),
        ((404, {}, {}), False, True, None, ""),
        ((302, {"Location": "/v2"}, {}), False, True, None, ""),
    ],
)
def test_an_answer_says_whether_another_attempt_is_worth_its_time(
    given: Any, passing: bool, hopeless: bool, after: float | None, kind: str, requests: list[Request]
) -> None:
    with serving(given) as server:
        answer = asked(server, requests)
        assert len(server.requests) == 1
    assert isinstance(answer.error, ServerError)
    assert answer.reply is None
    assert (answer.passing, answer.hopeless, answer.after, answer.kind) == (passing, hopeless, after, kind)


def test_a_server_that_takes_too_long_is_late(requests: list[Request]) -> None:
    with serving(slow_answer(b"", b"")) as server, closing(ServerModel(server.base_url, "m", timeout=0.3)) as model:
        [answer] = model.ask(requests, {})
    assert (answer.passing, answer.kind) == (True, "late")
    assert answer.seconds >= 0.3


def test_a_refusal_after_a_reply_is_the_requests_own(requests: list[Request]) -> None:
    with serving(ok(), (403, {}, {})) as server, closing(ServerModel(server.base_url, "m")) as model:
        assert model.ask(requests, {})[0].reply == "A cat."
        assert not model.ask(requests, {})[0].hopeless


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serving(ok()) as proxy:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, proxy.base_url.removesuffix("/v1").replace("//", "//me:pw@"))
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.setenv(name, "127.0.0.1")
        yield proxy


def test_the_proxy_of_the_environment_is_read_once(
    proxied: Server, requests: list[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(ServerModel("http://models.example/v1", "m", api_key="k")) as model:
        assert model.ask(requests, {})[0].reply == "A cat."
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.delenv(name)
        assert model.ask(requests, {})[0].reply == "A cat."
    [(path, headers, _), _] = proxied.requests
    assert path == "http://models.example/v1/chat/completions"
    assert headers["Proxy-Authorization"] == "Basic bWU6cHc="
    assert headers["Authorization"] == "Bearer k"


def test_no_proxy_holds_too(proxied: Server, requests: list[Request]) -> None:
    with serving(ok()) as server:
        assert asked(server, requests).reply == "A cat."
        assert len(server.requests) == 1
    assert not proxied.requests


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_certificates_that_are_not_there_are_an_error(
    variable: str, requests: list[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.setenv(variable, "/nowhere/bundle.pem")
    with closing(ServerModel("https://127.0.0.1:9/v1", "m")) as model:
        [answer] = model.ask(requests, {})
    assert "failed the request (OSError)" in str(answer.error)
    assert answer.hopeless


def test_a_header_of_the_caller_stands_in_place_of_the_key(requests: list[Request]) -> None:
    headers = {"authorization": "Basic eA==", "X-Team": "blue"}
    with serving(ok()) as server, closing(ServerModel(server.base_url, "m", api_key="k", headers=headers)) as model:
        model.ask(requests, {})
        assert "blue" not in repr(model)
        assert "blue" not in repr(vars(model.client))
    sent = {name.lower(): value for name, value in server.requests[0][1].items()}
    assert (sent["authorization"], sent["x-team"]) == ("Basic eA==", "blue")
