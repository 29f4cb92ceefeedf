"""Asking a server on this machine, against threads with ``requests`` that send ready bodies and do nothing else."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import inputs
import requests
from memory import peak_of
from timing import Row, interleaved

from mmprompt import Task, dataset_task
from mmprompt.run.server_model import ServerModel
from mmprompt.run.task_run import run_task

BAR = 1.1
THREADS = 16
GROWTH = 8.0
COUNTS = (1_000, 10_000)

SERVER = """
import asyncio, re

REPLY = b'{"choices":[{"message":{"role":"assistant","content":"A cat."},"finish_reason":"stop"}],"usage":{"total_tokens":9}}'
HEAD = b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(REPLY)
LENGTH = re.compile(rb"content-length: *([0-9]+)", re.I)

class Sink(asyncio.BufferedProtocol):
    def connection_made(self, transport):
        self.transport, self.room, self.head, self.left = transport, memoryview(bytearray(1 << 18)), b"", 0

    def get_buffer(self, hint):
        return self.room

    def buffer_updated(self, count):
        if self.left:
            self.left -= count
        else:
            self.head += self.room[:count]
            head, end, body = self.head.partition(b"\\r\\n\\r\\n")
            if not end:
                return
            self.left, self.head = int(LENGTH.search(head)[1]) - len(body), b""
        if not self.left:
            self.transport.write(HEAD + REPLY)

async def main():
    server = await asyncio.get_running_loop().create_server(Sink, "127.0.0.1", 0, backlog=128)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""
"""A server that takes bodies and replies at once, in a process of its own so that its work is not counted."""


def asking(folder: str, *, count: int = 600, repetitions: int = 7) -> list[Row]:
    """Ask for rows with a JPEG each, whose bodies are 130 to 330 KiB long, and measure rate and memory."""
    folder = os.path.join(folder, "asking")
    images = inputs.write_jpegs(folder, count)
    dataset = inputs.write_rows(os.path.join(folder, "asked.jsonl"), inputs.samples(images, count))
    task = dataset_task(dataset)
    bodies = [request.body("m") for request in task.requests()]
    with server() as base_url:
        contenders = {
            "ours": lambda: _ask(task, base_url, os.path.join(folder, "journal.jsonl")),
            "bound": lambda: _post(bodies, base_url),
        }
        timed = interleaved(contenders, repetitions)
        peaks = [_peak(folder, images, number, base_url) for number in COUNTS]
    ours, bound = timed["ours"], timed["bound"]
    rate, cpu = bound.best_wall / ours.best_wall, bound.best_cpu / ours.best_cpu
    figures = (
        f"{rate:.2f} wall, {cpu:.2f} CPU; {count / ours.best_wall:,.0f} of {count / bound.best_wall:,.0f} a second"
    )
    what = "ask a server, JPEG rows, against requests with ready bodies"
    listed = ", ".join(f"{peak:.1f} at {number:,}" for peak, number in zip(peaks, COUNTS, strict=True))
    flat = max(peaks) - min(peaks) < GROWTH
    return [
        Row(what, figures, f">= {BAR}", rate >= BAR),
        Row("peak memory of a run, JPEG rows, MiB", listed, f"grows < {GROWTH:.0f}", flat),
    ]


def _peak(folder: str, images: list[str], count: int, base_url: str) -> float:
    """Return the peak in MiB of ``mmprompt run``."""
    dataset = inputs.write_rows(os.path.join(folder, f"{count}.jsonl"), inputs.samples(images, count))
    journal = os.path.join(folder, f"{count}-m.jsonl")
    return peak_of("run", dataset, "--base-url", base_url, "--model", "m", "-o", journal, "--report", f"{journal}.json")


def _ask(task: Task, base_url: str, journal: str) -> None:
    """Read rows and pictures, make bodies, ask, and write the replies to a journal, as ``mmprompt run`` does."""
    with closing(ServerModel(base_url, "m", concurrency=THREADS)) as model:
        report = run_task(task, model, journal, options={"temperature": 0}, overwrite=True)
    if report.failed or not report.answered:
        raise SystemExit(f"{report.failed} rows failed")


def _post(bodies: list[bytes], base_url: str) -> None:
    """Send ready bodies as a script would: a default session a thread."""
    waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    for body in (*bodies, *[None] * THREADS):
        waiting.put(body)

    def work() -> None:
        with requests.Session() as session:
            while (body := waiting.get()) is not None:
                answer = session.post(
                    f"{base_url}/chat/completions", data=body, headers={"Content-Type": "application/json"}, timeout=60
                )
                answer.raise_for_status()
                answer.json()["choices"][0]["message"]["content"]

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextmanager
def server() -> Iterator[str]:
    """Give the base URL of a server for the time of a block."""
    process = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
    finally:
        process.kill()
        process.communicate()
