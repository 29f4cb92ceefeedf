"""An OpenAI-compatible server on the loopback address that records what it is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from loopback import serving

MODEL = "recorder"
Reply = Callable[[dict[str, Any]], "str | dict[str, Any]"]


class RecordingServer:
    """The requests so far, each with its path, headers and body; ``reply`` makes the answers: text, or a message."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.port = 0

    def scores(self, body: dict[str, Any]) -> dict[str, Any]:
        """What a prompt's tokens score: the one token the worse, the longer what was said."""
        said = sum(len(message["content"]) for message in body["messages"])
        return {"prompt_logprobs": [None, {"1": {"logprob": -said}}]}

    @property
    def base_url(self) -> str:
        """The address of the API."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The bodies of the chat requests, in order of arrival."""
        return [body for path, _, body in self.requests if path.endswith("/chat/completions")]


@contextmanager
def recording_server(reply: Reply = lambda body: "ok") -> Iterator[RecordingServer]:
    """Run the server for the block; it ends with it."""
    record = RecordingServer(reply)
    with serving(type("Bound", (_Handler,), {"record": record})) as record.port:
        yield record


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    record: RecordingServer

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.record.requests.append((self.path, dict(self.headers), body))
        text = self.record.reply(body)
        message = {"role": "assistant", "content": text} if isinstance(text, str) else text
        scores = self.record.scores(body) if "prompt_logprobs" in body else {}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if body.get("stream"):
            self._stream(message["content"], usage)
            return
        self._send({
            "id": "r", "object": "chat.completion", "created": 0, "model": MODEL, "usage": usage,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **scores,
        })  # fmt: skip

    def _stream(self, text: str, usage: dict[str, int]) -> None:
        head = {"id": "r", "object": "chat.completion.chunk", "created": 0, "model": MODEL}
        choices = [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}]
        last = [{"index": 0, "delta": {}, "finish_reason": "stop"}]
        events = [{**head, "choices": choices}, {**head, "choices": last, "usage": usage}]
        lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        self._answer(lines.encode(), "text/event-stream")

    def _send(self, value: object) -> None:
        self._answer(json.dumps(value).encode(), "application/json")

    def _answer(self, data: bytes, media_type: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Print nothing."""
