"""Which key goes where."""

from __future__ import annotations

import pytest

from mmprompt import ServerError
from mmprompt.run.address import Key, is_openai, key_for

BOTH = {"OPENAI_API_KEY": "sk-openai", "MMPROMPT_API_KEY": "own"}


@pytest.mark.parametrize(
    ("base_url", "key"),
    [
        ("https://api.openai.com/v1", "sk-openai"),
        ("https://API.openai.com:443/v1", "sk-openai"),
        ("http://api.openai.com/v1", "own"),
        ("https://api.openai.com.evil.example/v1", "own"),
        ("https://api.openai.com@evil.example/v1", "own"),
        ("https://evil.example/api.openai.com/v1", "own"),
        ("https://api.openai.com:8443/v1", "own"),
        ("http://127.0.0.1:8000/v1", "own"),
    ],
)
def test_openai_gets_its_key_and_every_other_server_our_own(base_url: str, key: str) -> None:
    assert key_for(base_url, environ=BOTH) == key
    assert is_openai(base_url) == (key == "sk-openai")


def test_without_a_key_of_its_own_a_server_gets_none() -> None:
    assert key_for("http://127.0.0.1:8000/v1", environ={"OPENAI_API_KEY": "sk-openai"}) is None
    assert key_for("https://api.openai.com/v1", environ={"MMPROMPT_API_KEY": "own"}) is None


def test_the_command_line_may_name_another_variable() -> None:
    environment = {**BOTH, "LAB_KEY": " lab\n"}
    assert key_for("http://lab.example/v1", "LAB_KEY", environment) == "lab"
    assert key_for("https://api.openai.com/v1", "LAB_KEY", environment) == "lab"
    assert key_for("https://api.openai.com/v1", "OPENAI_API_KEY", environment) == "sk-openai"
    with pytest.raises(ServerError, match="'LAB' is not set"):
        key_for("http://lab.example/v1", "LAB", environment)


def test_openais_key_cannot_be_named_for_another_server() -> None:
    with pytest.raises(ServerError, match=r"OPENAI_API_KEY goes to https://api.openai.com only"):
        key_for("http://lab.example/v1", "OPENAI_API_KEY", BOTH)


@pytest.mark.parametrize("value", ["a b", "a\nb", "schlüssel", "a\x7fb"])
def test_a_key_that_no_header_takes_is_refused_and_not_shown(value: str) -> None:
    with pytest.raises(ServerError) as caught:
        key_for("http://lab.example/v1", environ={"MMPROMPT_API_KEY": value})
    assert value not in str(caught.value)


def test_a_key_shows_itself_only_to_who_sends_it() -> None:
    key = key_for("http://lab.example/v1", environ=BOTH)
    assert repr(key) == "<key>"
    assert "own" not in repr({"Authorization": Key("Bearer own")})
