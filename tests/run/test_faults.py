"""A run against a server that fails three requests in ten, in all the ways that servers fail, and then recovers."""

from __future__ import annotations

import json
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import loopback
import pytest

from mmprompt.run.task_run import run_task

FAULTY = 0.3
SECONDS = 0.004
"""What an answer takes during the faults; after them a little more, so that the client can have many in flight."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Script

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = str(body["messages"][-1]["content"])
        with self.script.asking() as fault:
            time.sleep(self.script.seconds)
            if fault is None:
                self.answer(200, json.dumps(reply_to(text)).encode())
                self.script.replied[text] += 1
            else:
                fault(self)

    def answer(self, status: int, body: bytes = b"", missing: int = 0, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) + missing))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = self.close_connection or bool(missing)

    def log_message(self, *_: object) -> None:
        pass


def reply_to(text: str) -> dict[str, object]:
    return {"choices": [{"message": {"content": f"{text}!"}, "finish_reason": "stop"}], "usage": {"total_tokens": 3}}


def reset(handler: Handler) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def hang(handler: Handler) -> None:
    handler.server.over.wait(3.0)  # type: ignore[attr-defined]  # longer than the client waits
    handler.close_connection = True


FAULTS: dict[str, Callable[[Handler], None]] = {
    "429": lambda handler: handler.answer(429),
    "429 for 0.2 s": lambda handler: handler.answer(429, Retry_After="0.2"),
    "429 for 150 ms": lambda handler: handler.answer(429, retry_after_ms="150"),
    "429 with a date": lambda handler: handler.answer(429, Retry_After=formatdate(time.time() + 1, usegmt=True)),
    "500": lambda handler: handler.answer(500, b'{"error": {"message": "CUDA error"}}'),
    "503": lambda handler: handler.answer(503, b"busy"),
    "reset": reset,
    "half a body": lambda handler: handler.answer(200, b'{"choices": [{"mess', missing=40),
    "HTML": lambda handler: handler.answer(200, b"<html>starting</html>", Content_Type="text/html"),
    "hang": hang,
}


class Script:
    """What happens to each request: faults until ``recovery`` samples have a reply, none from then on."""

    def __init__(self, recovery: int, seconds_after: float) -> None:
        self.recovery = recovery
        self.seconds_after = seconds_after
        self.replied: Counter[str] = Counter()
        self.met: Counter[str] = Counter()
        self.at_once = 0
        self.most = {"before": 0, "end of faults": 0, "after": 0}
        self._random = random.Random(14)
        self._lock = threading.Lock()

    @property
    def seconds(self) -> float:
        return SECONDS if len(self.replied) < self.recovery else self.seconds_after

    @contextmanager
    def asking(self) -> Iterator[Callable[[Handler], None] | None]:
        with self._lock:
            done = len(self.replied)
            phase = "after" if done >= self.recovery else "end of faults" if done > self.recovery * 0.6 else "before"
            fault = self._random.choice(list(FAULTS)) if phase != "after" and self._random.random() < FAULTY else None
            self.met[fault or "reply"] += 1
            self.at_once += fault != "hang"  # as long as the client waits, but not to be seen from here
            self.most[phase] = max(self.most[phase], self.at_once)
        try:
            yield None if fault is None else FAULTS[fault]
        finally:
            with self._lock:
                self.at_once -= fault != "hang"


@contextmanager
def serving(script: Script) -> Iterator[str]:
    with loopback.serving(type("Scripted", (Handler,), {"script": script})) as port:
        yield f"http://127.0.0.1:{port}/v1"


@pytest.mark.parametrize(
    ("count", "concurrency", "seconds_after"),
    [pytest.param(160, 8, 0.05, id="small"), pytest.param(2000, 32, 0.2, id="large", marks=pytest.mark.slow)],
)
def test_every_sample_is_answered_once_whatever_the_server_does(
    count: int, concurrency: int, seconds_after: float, tmp_path: Path
) -> None:
    dataset = tmp_path / "rows.jsonl"
    dataset.write_text("".join([json.dumps({"id": n, "question": f"sample {n}"}) + "\n" for n in range(count)]))
    script = Script(count // 2, seconds_after)
    begun = time.monotonic()
    with serving(script) as base_url:
        report = run_task(
            str(dataset), "m", tmp_path / "j.jsonl", base_url=base_url, concurrency=concurrency, timeout=1.0
        )
    seconds = time.monotonic() - begun
    print(f"{seconds:.1f} s, at most at once {script.most}, {dict(script.met)}")
    lines = [json.loads(line) for line in (tmp_path / "j.jsonl").read_text().splitlines()]
    answered = {line["id"]: line["prediction"] for line in lines if "prediction" in line}
    assert report.answered == count
    assert answered == {n: f"sample {n}!" for n in range(count)}
    assert sum("prediction" in line for line in lines) == count  # none twice
    assert max(Counter(script.replied).values()) == 1  # nor asked again after a reply
    assert all(script.met[name] for name in FAULTS) or count < 1000
    assert script.most["end of faults"] < script.most["after"] > concurrency / 2
    assert seconds < 60
