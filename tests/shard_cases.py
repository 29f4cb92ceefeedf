"""What the tests of engines share: a dataset with faults, a server that counts, and a process that dies of a file."""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler

ROWS = 160
SHARD = 20

HOOK = """\
import os, signal, sys, time
def hook(event, arguments):
    if event == "open" and isinstance(arguments[0], str):
        if arguments[0].endswith("poison.png"):
            os.kill(os.getpid(), signal.SIGKILL)
        if arguments[0].endswith("slow.png"):
            time.sleep(0.05)
sys.addaudithook(hook)
"""
"""A process that opens one file dies of it, as by a broken decoder; another file is read slowly."""

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def dataset(folder, **pictures):
    """Write a dataset of rows with a picture each; one row is no JSON, one id is repeated, one file is missing."""
    for name in ("good.png", "poison.png", "slow.png"):
        (folder / name).write_bytes(PNG)
    lines = []
    for number in range(ROWS):
        name = pictures.get(f"n{number}", pictures.get("every", "good.png"))
        row = {
            "id": f"r{number if number != 99 else 98}",
            "image": name,
            "question": f"What is {number}?",
            "answer": "red",
        }
        lines.append(
            "{torn" if number == 61 else json.dumps({**row, **({"image": "none.png"} if number == 70 else {})})
        )
    (folder / "data.jsonl").write_text("\n".join(lines) + "\n")
    return folder / "data.jsonl"


class Answers(BaseHTTPRequestHandler):
    """Answers each request by its question."""

    protocol_version = "HTTP/1.1"
    lock = threading.Lock()
    asked = 0
    flying = 0
    most = 0
    seconds = 0.0
    third = threading.Event()

    def log_message(self, *_):
        pass

    def do_POST(self):
        text = self.rfile.read(int(self.headers["content-length"])).decode()
        with self.lock:
            type(self).asked += 1
            type(self).flying += 1
            type(self).most = max(self.most, self.flying)
            if self.asked > ROWS / 3:
                self.third.set()
        time.sleep(self.seconds)
        number = re.search(r"What is (\d+)", text)[1]
        message = {"role": "assistant", "content": "red" if int(number) % 2 else "blue"}
        body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
        with self.lock:
            type(self).flying -= 1
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def lines_of(journal):
    """Return the lines of a journal, sorted, without what differs from run to run."""
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    kept = [{k: v for k, v in line.items() if k not in ("seconds", "attempts")} for line in lines]
    return sorted(json.dumps(line, sort_keys=True) for line in kept)


def told(run):
    """Return what a run says, without the names of its outputs."""
    return re.sub(r"(plain|ray|local)\.\w+", "OUT", run.stderr.decode()).splitlines()
