"""Which server a run asks, and which keys and headers go there."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import loopback
import pytest

from mmprompt import ServerError
from mmprompt.run.address import server_access

ENVIRONMENT = {"MMPROMPT_API_KEY": "own", "OPENAI_API_KEY": "sk-openai", "TEAM": "blue"}
LOCAL = "http://127.0.0.1:8000/v1"
LAB = "https://lab.example/v1"
REPLY = b'{"choices": [{"message": {"content": "A cat."}}]}'


def test_the_command_line_counts_first_then_the_task_file_then_the_environment() -> None:
    named = {**ENVIRONMENT, "MMPROMPT_BASE_URL": "http://localhost:1/v1"}
    assert server_access(LAB, LOCAL, environ=named).base_url == LAB
    assert server_access(None, LOCAL, environ=named).base_url == LOCAL
    assert server_access(None, None, environ=named).base_url == "http://localhost:1/v1"
    with pytest.raises(ServerError, match="no server is given; give --base-url URL, or set MMPROMPT_BASE_URL"):
        server_access(None, None, environ=ENVIRONMENT)


@pytest.mark.parametrize(
    "stranger",
    ["http://evil.example/v1", "https://lab.example.evil.net/v1", "http://169.254.169.254/latest", "http://127.1/v1"],
)
def test_a_server_that_only_the_task_file_names_is_not_asked(stranger: str) -> None:
    for named in ({}, {"MMPROMPT_BASE_URL": LAB}):
        with pytest.raises(ServerError, match=r"only the task file names the server .*; give --base-url URL"):
            server_access(None, stranger, environ={**ENVIRONMENT, **named})


@pytest.mark.parametrize("local", [LOCAL, "http://localhost:8000/v1", "http://[::1]:8000/v1", "http://127.9.9.9/v1"])
def test_this_machine_may_be_asked_without_a_key(local: str) -> None:
    assert server_access(None, local, environ=ENVIRONMENT) == (local, None, {})
    for wish in ({"key_variable": "MMPROMPT_API_KEY"}, {"headers": ["X-Team=TEAM"]}):
        with pytest.raises(ServerError, match="so no key or header goes there; give --base-url"):
            server_access(None, local, environ=ENVIRONMENT, **wish)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("named", "in_task_file"),
    [
        (LAB, LAB),
        (LAB, "https://LAB.example:443/other/v1"),
        ("https://lab.example:443/v1", LAB),
        ("http://lab.example/v1", "http://lab.example:80/v1"),
        ("http://lab.example:8000/v1", "http://lab.example:8000"),
        (LOCAL, LOCAL),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v2"),
    ],
)
def test_a_server_that_the_caller_names_too_is_asked_with_key_and_headers(named: str, in_task_file: str) -> None:
    environment = {**ENVIRONMENT, "MMPROMPT_BASE_URL": named}
    access = server_access(None, in_task_file, headers=["X-Team=TEAM"], environ=environment)
    assert access == (in_task_file, "own", {"X-Team": "blue"})
    assert "own" not in repr(access)
    assert "blue" not in repr(access)
    assert server_access(named, in_task_file, environ=ENVIRONMENT) == (named, "own", {})


@pytest.mark.parametrize(
    ("named", "in_task_file"),
    [
        (LAB, "https://lab.example:8443/v1"),
        ("https://lab.example:8443/v1", LAB),
        ("http://lab.example:8000/v1", "http://lab.example:8001/v1"),
        ("http://lab.example/v1", "http://lab.example:443/v1"),
        (LAB, "http://lab.example/v1"),
        (LAB, "http://lab.example:443/v1"),
        ("http://lab.example/v1", LAB),
        ("http://lab.example:443/v1", LAB),
        (LAB, "https://lab.example./v1"),
        (LAB, "https://api.lab.example/v1"),
        (LOCAL, LAB),
    ],
)
def test_another_scheme_host_or_port_is_another_server_and_is_not_asked(named: str, in_task_file: str) -> None:
    with pytest.raises(ServerError, match="only the task file names the server"):
        server_access(None, in_task_file, environ={**ENVIRONMENT, "MMPROMPT_BASE_URL": named})


@pytest.mark.parametrize(
    ("named", "in_task_file"),
    [
        (LOCAL, "http://127.0.0.1:8001/v1"),
        ("http://127.0.0.1:8001/v1", LOCAL),
        ("http://127.0.0.1/v1", LOCAL),
        (LOCAL, "http://127.0.0.1/v1"),
        (LOCAL, "https://127.0.0.1:8000/v1"),
        ("https://127.0.0.1:8000/v1", LOCAL),
        (LOCAL, "http://localhost:8000/v1"),
        ("http://localhost:8000/v1", LOCAL),
        ("http://[::1]:8000/v1", LOCAL),
        (LAB, LOCAL),
    ],
)
def test_another_server_of_this_machine_is_asked_without_key_and_headers(named: str, in_task_file: str) -> None:
    environment = {**ENVIRONMENT, "MMPROMPT_BASE_URL": named}
    assert server_access(None, in_task_file, environ=environment) == (in_task_file, None, {})
    for wish in ({"key_variable": "MMPROMPT_API_KEY"}, {"headers": ["X-Team=TEAM"]}):
        with pytest.raises(ServerError, match="so no key or header goes there; give --base-url"):
            server_access(None, in_task_file, environ=environment, **wish)  # type: ignore[arg-type]


def test_the_key_goes_to_the_port_that_the_caller_names_and_to_no_other(
    tmp_path: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "r.jsonl").write_text('{"id": 1, "question": "a?"}\n')
    seen: dict[int, list[tuple[str | None, str | None]]] = {}

    class Noting(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            here = seen.setdefault(self.server.server_port, [])  # type: ignore[attr-defined]
            here.append((self.headers["Authorization"], self.headers["X-Team"]))
            self.send_response(200)
            self.send_header("Content-Length", str(len(REPLY)))
            self.end_headers()
            self.wfile.write(REPLY)

        def log_message(self, *_: object) -> None:
            pass

    def run(of_task: int, *options: object) -> tuple[int, str]:
        api = {"base_url": f"http://127.0.0.1:{of_task}/v1", "model": "m"}
        (tmp_path / "t.json").write_text(json.dumps({"dataset": "r.jsonl", "model": api}))
        done = command("run", "t.json", "-o", "j.jsonl", "--overwrite", *options, cwd=tmp_path)
        return done.returncode, done.stderr.decode()

    with loopback.serving(Noting) as one, loopback.serving(Noting) as other:
        for name, value in {**ENVIRONMENT, "MMPROMPT_BASE_URL": f"http://127.0.0.1:{one}/v1"}.items():
            monkeypatch.setenv(name, value)
        assert run(other)[0] == 0
        assert run(one, "--header", "X-Team=TEAM")[0] == 0
        code, told = run(other, "--header", "X-Team=TEAM")
        assert (code, "so no key or header goes there; give --base-url" in told) == (2, True)
        assert run(other, "--base-url", f"http://127.0.0.1:{other}/v1")[0] == 0
    assert seen == {other: [(None, None), ("Bearer own", None)], one: [("Bearer own", "blue")]}


@pytest.mark.parametrize("header", ["X-Team", "=TEAM", "X Team=TEAM", "X-Team:=TEAM", "X-Team=", "Müller=TEAM"])
def test_a_header_is_a_name_and_a_variable(header: str) -> None:
    with pytest.raises(ServerError, match="is not NAME=VARIABLE; write --header X-Team=TEAM"):
        server_access(LAB, headers=[header], environ=ENVIRONMENT)


@pytest.mark.parametrize(
    ("header", "environment", "message"),
    [
        ("Host=TEAM", ENVIRONMENT, "the header Host is not an option; leave it out"),
        ("content-LENGTH=TEAM", ENVIRONMENT, "is not an option"),
        ("X-Team=OTHER", ENVIRONMENT, "the environment variable 'OTHER' is not set; set it to the value of the header"),
        ("X-Team=TEAM", {"TEAM": "blue\r\nX-Other: 1"}, "'TEAM' holds characters that an HTTP header cannot carry"),
    ],
)
def test_headers_that_cannot_be_sent(header: str, environment: dict[str, str], message: str) -> None:
    with pytest.raises(ServerError, match=message):
        server_access(LAB, headers=[header], environ=environment)


def test_a_key_that_stands_where_the_name_of_a_header_belongs_is_not_shown() -> None:
    with pytest.raises(ServerError) as caught:
        server_access(LAB, headers=["sk-proj-secret=OTHER"], environ={})
    assert "secret" not in str(caught.value)
