"""A server on loopback that answers chat completions with what a function says of the request's text."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import loopback

Reply = Callable[[dict[str, Any]], "str | tuple[int, dict[str, Any]]"]


class Answering:
    """The server's address, and the bodies that it received."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.bodies: list[dict[str, Any]] = []
        self.most = 0

    def texts(self) -> list[str]:
        """The text of the last message of each request, in the order they came."""
        return [text_of(body) for body in self.bodies]


def text_of(body: dict[str, Any]) -> str:
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else "\n".join(p["text"] for p in content if p["type"] == "text")


def replies(text: str) -> dict[str, Any]:
    return {
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"total_tokens": 3},
    }


@contextmanager
def answering(reply: Reply) -> Iterator[Answering]:
    """Give a server; ``reply`` returns the text of its reply, or a status and the body of a refusal."""
    record = Answering("")
    lock = threading.Lock()
    now = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            nonlocal now
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                record.bodies.append(body)
                now += 1
                record.most = max(record.most, now)
            said = reply(body)
            status, answer = (200, replies(said)) if isinstance(said, str) else said
            data = json.dumps(answer).encode()
            with lock:
                now -= 1
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with loopback.serving(Handler) as port:
        record.base_url = f"http://127.0.0.1:{port}/v1"
        yield record
