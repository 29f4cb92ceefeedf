"""Answers OpenAI's chat API on the loopback address with one model, for trying runners and tests.

Media come inside a request, as data URIs. No file is opened and no URL is fetched.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, Protocol, TypeAlias

import orjson

from mmprompt._log import log
from mmprompt._version import __version__
from mmprompt.errors import MMPromptError, ServerError, shown
from mmprompt.messages import MediaRef, Message
from mmprompt.run.reply import Reply
from mmprompt.targets.json_values import JSONValue
from mmprompt.targets.openai_reading import from_openai

LONGEST_BODY = 64 << 20
"""Bytes of one request."""

_PATIENCE = 60.0
"""Seconds that a client may take to send a request, and that an idle connection is kept."""

_DRAIN = 10.0
"""Seconds in which the body of a request that was refused is read to its end."""

_HOSTS = ("127.0.0.1", "localhost")
"""What a client calls this machine. A page that makes its own name lead here is refused, and one of another origin."""

_DIGITS = 12
_OWN_KEYS = ("messages", "model", "stream", "stream_options", "n")

_Json: TypeAlias = dict[str, object]


class ServedModel(Protocol):
    """A model that a server can ask."""

    name: str
    concurrency: int
    """The most calls of ``reply`` at once."""

    def reply(self, messages: Sequence[Message], options: Mapping[str, JSONValue]) -> Reply:
        """Return the reply to messages whose media are read. ``options`` are the other keys of the request.

        Raises:
            MMPromptError: the model does not take the messages or an option.
        """
        ...

    def close(self) -> None:
        """Release processes and memory."""
        ...


class ChatRequest(NamedTuple):
    """The body of a request. ``told_usage`` says that the stream ends with the usage."""

    messages: list[Message]
    options: Mapping[str, JSONValue]
    stream: bool
    told_usage: bool


class ModelServer(ThreadingHTTPServer):
    """A server on 127.0.0.1: ``POST /v1/chat/completions`` and ``GET /v1/models``. It is a context, which closes it.

    Args:
        model: what answers.
        port: 0 takes a free one.

    Raises:
        ServerError: the port cannot be used.
    """

    daemon_threads = True  # a connection that is kept open does not hold up the end
    request_queue_size = 128  # a runner may ask for all its rows at once

    def __init__(self, model: ServedModel, port: int = 0) -> None:
        self.model = model
        self.room = threading.BoundedSemaphore(model.concurrency)
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:
            what = f"port {port} cannot be used ({getattr(error, 'strerror', None) or 'it is not from 0 to 65535'})"
            raise ServerError(what, "give another with --port, or leave it out for a free one") from None

    @property
    def url(self) -> str:
        """The base URL of the API."""
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        """Log the end of a connection that the client broke off."""
        log.debug("connection of %s ended: %s", client_address, request, exc_info=True)


class _RefusedError(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = f"mmprompt/{__version__}"
    sys_version = ""
    timeout = _PATIENCE
    disable_nagle_algorithm = True
    server: ModelServer

    def do_GET(self) -> None:
        """Answer ``/v1/models``."""
        self._answer("/v1/models", self._models)

    def do_POST(self) -> None:
        """Answer ``/v1/chat/completions``."""
        self._answer("/v1/chat/completions", self._completion)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send an error in OpenAI's form; ``explain`` is its code. The connection ends: its body may be unread."""
        self.close_connection = True
        kind = "invalid_request_error" if code < 500 else "server_error"
        words = message or HTTPStatus(code).phrase
        self._send(code, {"error": {"message": words, "type": kind, "param": None, "code": explain}})

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  # the library's name
        """Write the line of a request to our logger, which is silent unless the host configures it."""
        log.debug(format, *arguments)

    def _answer(self, path: str, make: Callable[[bytes], _Json | bytes]) -> None:
        """Send what ``make`` returns for the body of a request to ``path``, or an error."""
        try:
            self._check_sender()
            body = self._body()
            self._check_path(path)
            answer = make(body)
        except _RefusedError as refusal:
            self.send_error(refusal.status, str(refusal), refusal.code)
            if refusal.status in (411, 413):
                self._drain()
        except MMPromptError as error:
            self.send_error(400, str(error), error.code)
        except (ConnectionError, TimeoutError):  # the client has gone
            raise
        except Exception as error:  # noqa: BLE001  # the outermost boundary: the client gets an answer all the same
            log.exception("a request failed")
            self.send_error(500, f"the server failed ({type(error).__name__})")
        else:
            self._send(200, answer)

    def _body(self) -> bytes:
        """Read the body of the request."""
        if self.command == "GET":
            return b""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()):
            raise _RefusedError(411, "the request has no Content-Length")
        if len(length) > _DIGITS or int(length) > LONGEST_BODY:
            raise _RefusedError(413, f"the request has more than {LONGEST_BODY >> 20} MiB")
        return self.rfile.read(int(length))

    def _drain(self) -> None:
        """Read what the client is still sending, for some seconds: it looks at the answer when it has sent all."""
        self.connection.settimeout(1)
        end = time.monotonic() + _DRAIN
        with suppress(OSError):
            while time.monotonic() < end and self.rfile.read1(1 << 16):
                pass

    def _check_sender(self) -> None:
        """Refuse a request to another host, and one from a page of another origin; its body is not read yet."""
        url, host, origin = self.server.url, self.headers.get("Host", ""), self.headers.get("Origin")
        if host.partition(":")[0] not in _HOSTS:
            raise _RefusedError(403, f"the Host header is {shown(host)}; ask {url}")
        if origin is not None and origin not in [f"http://{name}:{self.server.server_port}" for name in _HOSTS]:
            raise _RefusedError(403, f"the Origin header is {shown(origin)}; ask {url} from a program, not from a page")

    def _check_path(self, path: str) -> None:
        """Refuse a request to another path."""
        if self.path.partition("?")[0] != path:
            raise _RefusedError(404, f"{self.command} {shown(self.path)} is unknown; ask below {self.server.url}")

    def _send(self, status: int, answer: _Json | bytes) -> None:
        """Send JSON, or the bytes of a stream of events."""
        is_stream = isinstance(answer, bytes)
        body = answer if isinstance(answer, bytes) else orjson.dumps(answer)
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream" if is_stream else "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _models(self, _: bytes) -> _Json:
        model = {"id": self.server.model.name, "object": "model", "created": 0, "owned_by": "mmprompt"}
        return {"object": "list", "data": [model]}

    def _completion(self, body: bytes) -> _Json | bytes:
        """Return the answer to a request: one object, or a stream of events with the same reply."""
        model = self.server.model
        asked = _chat_request(body, model.name)
        with self.server.room:
            reply = model.reply(asked.messages, asked.options)
        head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": model.name}
        usage = dict(reply.usage) or None
        if asked.stream:
            return _events(head, reply, usage if asked.told_usage else None)
        message = {"role": "assistant", "content": str(reply)}
        choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason or "stop", "logprobs": None}
        return {**head, "object": "chat.completion", "choices": [choice], "usage": usage}


def _chat_request(body: bytes, name: str) -> ChatRequest:
    """Return the body of a request to the model ``name``."""
    try:
        asked = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _RefusedError(400, f"the request is not JSON: {error}", "MM002") from None
    if not isinstance(asked, dict):
        raise _RefusedError(400, "the request is not a JSON object", "MM007")
    if asked.get("model") not in (None, "", name):
        what = f"the model {shown(asked['model'])} is not served here; ask for '{name}'"
        raise _RefusedError(404, what, "model_not_found")
    if asked.get("n") not in (None, 1):
        raise _RefusedError(400, f"n is {shown(asked['n'])}; ask again for another reply")
    messages = from_openai(asked.get("messages"))  # type: ignore[arg-type]  # what is no list is refused
    if not messages:
        raise _RefusedError(400, "messages is empty; give at least one", "MM007")
    for part in [part for message in messages for part in message.parts]:
        if isinstance(part, MediaRef):
            what = f"the {part.modality} {shown(part.source)} is not opened; send it as a data URI"
            raise _RefusedError(400, what, "MM210")
    more = asked.get("stream_options")
    told_usage = isinstance(more, dict) and bool(more.get("include_usage"))
    options = {key: value for key, value in asked.items() if key not in _OWN_KEYS}
    return ChatRequest(messages, options, bool(asked.get("stream")), told_usage)


def _events(head: _Json, reply: Reply, usage: _Json | None) -> bytes:
    """Return a reply as server-sent events: its role, its text, its end, and its usage if there is one."""
    deltas: list[tuple[_Json, str | None]] = [
        ({"role": "assistant", "content": ""}, None),
        ({"content": str(reply)}, None),
        ({}, reply.finish_reason or "stop"),
    ]
    chunk = {**head, "object": "chat.completion.chunk"}
    chunks = [{**chunk, "choices": [{"index": 0, "delta": d, "finish_reason": end}]} for d, end in deltas]
    if usage is not None:
        chunks.append({**chunk, "choices": [], "usage": usage})
    return b"".join([b"data: " + orjson.dumps(event) + b"\n\n" for event in chunks]) + b"data: [DONE]\n\n"
