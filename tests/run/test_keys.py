"""Which key goes where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from readme_blocks import ROOT

from mmprompt import ServerError, load_task
from mmprompt.cli import _arguments
from mmprompt.cli.engine import work_folder
from mmprompt.run.address import Key, header_values, is_openai, key_for

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


KEYS = ["sk-live-1234567890", "hf_sklive1234567890", "Bearer sk-live", "1234567890ABCDEF", "A" * 65, "AZ09+/=="]


@pytest.mark.parametrize("key", KEYS)
def test_a_key_typed_as_the_name_of_a_variable_is_not_shown(key: str) -> None:
    with pytest.raises(ServerError, match="the environment variable <hidden> is not set") as caught:
        key_for("http://lab.example/v1", key, {})
    assert key not in repr(caught.value.args)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("header", ["X-Team={}", "{}", "Authorization: {}", "{} =TEAM", "={}"])
def test_a_key_typed_into_a_header_is_not_shown(header: str, key: str) -> None:
    with pytest.raises(ServerError) as caught:
        header_values([header.format(key)], {"TEAM": "blue"})
    assert key not in repr(caught.value.args)


def test_a_key_that_holds_the_name_of_a_variable_is_not_shown_either() -> None:
    for key in KEYS:
        with pytest.raises(ServerError, match="<hidden> holds characters") as caught:
            key_for("http://lab.example/v1", key, {key: "a\nb"})
        assert key not in repr(caught.value.args)


@pytest.mark.parametrize("header", ["X=sk-live-1234567890", "sk-live-1234567890"])
@pytest.mark.parametrize("engine", [(), ("--engine", "local")])
def test_a_key_typed_as_a_header_is_in_no_file_of_a_run_that_asks_no_server(
    command: Any, tmp_path: Path, header: str, engine: tuple[str, ...]
) -> None:
    words = ["run", ROOT / "fixtures/shapes/task.yaml", "--limit", "1", "--model", "builtin:shapes", *engine]
    done = command(*words, "--header", header, "-o", tmp_path / "j.jsonl")
    assert done.returncode == 0
    assert b"sk-live" not in done.stdout + done.stderr
    written = [path.read_bytes() for path in tmp_path.iterdir()]
    assert len(written) == 2
    assert b"sk-live" not in b"".join(written)


def test_a_key_typed_as_a_header_is_not_in_the_plan_of_shards(tmp_path: Path) -> None:
    task = ROOT / "fixtures/shapes/task.yaml"
    arguments = _arguments(
        ["run", str(task), "--header", "X=sk-live-1234567890", "--api-key-env", "sk-live-1234567890"]
    )
    with work_folder(arguments, load_task(task), str(tmp_path / "j.jsonl")) as (folder, _):
        plan = Path(folder.path, "plan.json").read_text(encoding="utf-8")
    assert "--limit" in plan
    assert "sk-live" not in plan
