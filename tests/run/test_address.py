"""Which server a run asks, and which keys and headers go there."""

from __future__ import annotations

import pytest

from mmprompt import ServerError
from mmprompt.run.address import server_access

ENVIRONMENT = {"MMPROMPT_API_KEY": "own", "OPENAI_API_KEY": "sk-openai", "TEAM": "blue"}
LOCAL = "http://127.0.0.1:8000/v1"
LAB = "https://lab.example/v1"


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


def test_a_host_that_the_caller_names_too_is_asked_with_key_and_headers() -> None:
    named = {**ENVIRONMENT, "MMPROMPT_BASE_URL": LAB}
    access = server_access(None, "https://LAB.example:8443/other/v1", headers=["X-Team=TEAM"], environ=named)
    assert access == ("https://LAB.example:8443/other/v1", "own", {"X-Team": "blue"})
    assert server_access(LAB, None, headers=["X-Team=TEAM"], environ=ENVIRONMENT) == (LAB, "own", {"X-Team": "blue"})
    assert "own" not in repr(access)
    assert "blue" not in repr(access)


def test_a_task_file_cannot_have_the_key_sent_in_the_clear() -> None:
    named = {**ENVIRONMENT, "MMPROMPT_BASE_URL": LAB}
    assert server_access(None, "http://lab.example/v1", environ=named).key is None


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
