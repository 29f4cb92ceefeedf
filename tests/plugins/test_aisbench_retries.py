"""AISBench's client with our pauses, against servers that are too busy, fail for the moment, or are not there."""

from __future__ import annotations

import asyncio
import json
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from loopback import serving
from runner_present import need

from mmprompt.errors import ServerError

need("aisbench", "ais_bench")
pytestmark = pytest.mark.runners

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import aiohttp
    from ais_bench.benchmark.models.output import RequestOutput

    from mmprompt.plugins.aisbench import MMPromptChat

Answers = list[tuple[int, dict[str, str]]]
"""The statuses and headers of a server's answers; after them it answers well."""


@contextmanager
def refusing(answers: Answers) -> Iterator[int]:
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            status, headers = left.pop(0) if left else (200, {})
            message = {"error": {"message": "loading"}}
            reply = {"choices": [{"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(json.dumps(reply if status == 200 else message).encode())

        def log_message(self, *_: object) -> None:
            pass

    with serving(Handler) as port:
        yield port


def asked(port: int, **options: Any) -> Any:
    """What AISBench has of one request."""

    async def ask() -> Any:
        model = MMPromptChat(path="", model="m", host_ip="127.0.0.1", host_port=port, generation_kwargs={}, **options)
        output = RequestOutput(False)
        async with aiohttp.ClientSession() as session:
            await model.generate("?", 4, output, session=session)
        return output

    return asyncio.run(ask())


@pytest.mark.parametrize("answers", [[(500, {})], [(503, {}), (429, {"Retry-After": "0.1"})]])
def test_a_server_that_fails_for_the_moment_is_asked_again(answers: Answers) -> None:
    with refusing(answers) as port:
        output = asked(port)
    assert (output.success, output.get_prediction()) == (True, "ok")


def test_the_pause_is_at_least_as_long_as_the_server_asks_for() -> None:
    with refusing([(429, {"Retry-After": "1.5"})]) as port:
        begun = time.monotonic()
        output = asked(port)
    assert output.success
    assert time.monotonic() - begun >= 1.5


def test_what_the_server_says_is_the_reason_of_the_failure() -> None:
    with refusing([(500, {}), (500, {}), (500, {})]) as port:
        output = asked(port, retry=2)
    assert not output.success
    assert "500 (Internal Server Error): 'loading'" in output.error_info


def test_a_request_that_is_refused_for_good_is_not_sent_again() -> None:
    with refusing([(400, {})]) as port:
        assert not asked(port).success
        assert asked(port).success


def test_a_server_that_is_not_there_is_named_within_seconds() -> None:
    with refusing([]) as port:
        pass
    begun = time.monotonic()
    output = asked(port, retry=2)
    assert f"127.0.0.1:{port}/v1/chat/completions cannot be reached; start the server" in output.error_info
    with pytest.raises(ServerError, match="start the server, check host_ip and host_port, or give model="):
        MMPromptChat(path="", model="", host_ip="127.0.0.1", host_port=port)
    assert time.monotonic() - begun < 10
