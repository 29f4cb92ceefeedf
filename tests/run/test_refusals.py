"""What a server refuses: the user is told at once, in the server's words, and the key stands in nothing written."""

from __future__ import annotations

import json
import logging
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import loopback
import pytest

from mmprompt import MMPromptError, ServerError
from mmprompt.run.task_run import run_task

KEY = 'sk-never"to\\be-seen'
TEAM = "team-secret"
ROWS = 40
CONCURRENCY = 4


class Refusing(BaseHTTPRequestHandler):
    """Refuses all requests and says everything that it was sent in the headers."""

    protocol_version = "HTTP/1.1"
    status = 0
    seen: list[str]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append(str(self.headers["Authorization"]))
        words = f"no: {self.headers['Authorization']} of {self.headers['X-Team']}"
        data = json.dumps({"error": {"message": words}}).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Location", f"http://other.example/{KEY}")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MMPROMPT_API_KEY", KEY)
    monkeypatch.setenv("TEAM", TEAM)
    path = tmp_path / "rows.jsonl"
    path.write_text("".join([json.dumps({"id": n, "question": f"{n}?"}) + "\n" for n in range(ROWS)]))
    return path


def refusing(status: int, seen: list[str]) -> Any:
    return loopback.serving(type("Refuses", (Refusing,), {"status": status, "seen": seen}))


def written(folder: Path) -> list[str]:
    return [path.read_text("utf-8") for path in sorted(folder.iterdir())]


@pytest.mark.parametrize("status", [401, 403, 404, 307])
def test_a_wrong_key_model_or_address_ends_the_run(
    status: int, rows: Path, command: Any, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []
    with caplog.at_level(logging.DEBUG), refusing(status, seen) as port:
        options = ("--base-url", f"http://127.0.0.1:{port}/v1", "--model", "m", "--header", "X-Team=TEAM")
        done = command("run", rows.name, *options, "--concurrency", CONCURRENCY, "-o", "j.jsonl", cwd=rows.parent)
    assert done.returncode == 2, done.stderr
    told = done.stderr.decode()
    assert f"answers {status}" in told
    assert "no: Bearer <key> of <key>" in told or status == 307
    assert seen[0] == f"Bearer {KEY}"
    assert len(seen) <= 2 * CONCURRENCY  # those that were in flight already
    everything = [*written(rows.parent), told, done.stdout.decode(), caplog.text]
    assert not [text for text in everything if KEY in text or TEAM in text or json.dumps(KEY)[1:-1] in text]


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refused_body_is_the_error_of_its_row_and_is_not_sent_again(
    status: int, rows: Path, command: Any, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []
    with caplog.at_level(logging.DEBUG), refusing(status, seen) as port:
        options = ("--base-url", f"http://127.0.0.1:{port}/v1", "--model", "m", "--header", "X-Team=TEAM")
        done = command("run", rows.name, *options, "--errors", "e.jsonl", "-o", "j.jsonl", cwd=rows.parent)
    assert done.returncode == 1, done.stderr
    assert len(seen) == ROWS
    lines = [json.loads(line) for line in (rows.parent / "j.jsonl").read_text().splitlines()]
    assert len(lines) == ROWS
    assert all("no: Bearer <key> of <key>" in line["error"] for line in lines)
    assert not any("prediction" in line for line in lines)
    told = done.stderr.decode()
    assert "no: Bearer <key> of <key>" in told
    everything = [*written(rows.parent), told, done.stdout.decode(), caplog.text]
    assert not [text for text in everything if KEY in text or TEAM in text or json.dumps(KEY)[1:-1] in text]


def test_errors_from_python_hold_no_key(rows: Path) -> None:
    errors: list[MMPromptError] = []
    with refusing(400, []) as port:
        base_url = f"http://127.0.0.1:{port}/v1"
        run_task(str(rows), "m", rows.parent / "j.jsonl", base_url=base_url, on_error=errors.append)
    assert len(errors) == ROWS
    with refusing(401, []) as port, pytest.raises(ServerError) as caught:
        run_task(str(rows), "m", rows.parent / "k.jsonl", base_url=f"http://127.0.0.1:{port}/v1")
    for error in (*errors, caught.value):
        assert KEY not in f"{error} {error!r} {error.args}"
