"""Every way to a request gives equal messages: the command line, Python, the test helpers, pytest and each runner."""

from __future__ import annotations

import base64
import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from recording_server import MODEL, recording_server
from runner_present import need

from mmprompt import MediaPolicy, load_task
from mmprompt.plugins.pytest_plugin import _CLIENT
from mmprompt.testing import sent_by

TASKS = ("task", "chats", "shots")
"""The tour with a meta template, as chats with media of their own, and with examples that hold media."""
READER = {"input_columns": ["id"], "output_column": "answer"}


@pytest.fixture(scope="module", params=TASKS)
def task(request: pytest.FixtureRequest, tasks: dict[str, str]) -> str:
    return tasks[request.param]


@pytest.fixture(scope="module")
def stream(task: str) -> dict[object, Any]:
    """The messages of ``Task.requests`` by id."""
    messages = {request.id: request.messages for request in load_task(task).requests()}
    assert len(messages) >= 8
    assert any("base64," in json.dumps(said) for said in messages.values())
    return messages


def test_the_command_line(task: str, stream: dict[object, Any], command: Any) -> None:
    lines = map(json.loads, command("render", task).stdout.splitlines())
    assert {line["id"]: line["messages"] for line in lines} == stream


def test_the_body_of_a_request(task: str, stream: dict[object, Any]) -> None:
    bodies = {request.id: json.loads(request.body()) for request in load_task(task).requests()}
    assert {id_: body["messages"] for id_, body in bodies.items()} == stream


def test_the_helpers_for_tests(task: str, stream: dict[object, Any]) -> None:
    assert {id_: request["messages"] for id_, request in sent_by(task).items()} == stubbed(stream)


def stubbed(value: Any, key: str = "") -> Any:
    """The messages with a stub in place of each base64 text."""
    if isinstance(value, dict):
        return {name: stubbed(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [stubbed(item) for item in value]
    if key == "data" or (key == "url" and value.startswith("data:")):
        prefix, comma, text = value.rpartition(",")
        data = base64.b64decode(text)
        return f"{prefix}{comma}<{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}>"
    return value


def test_the_fixture_of_pytest(
    task: str,
    stream: dict[object, Any],
    tour: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with recording_server() as server:
        monkeypatch.setenv("MMPROMPT_BASE_URL", server.base_url)
        monkeypatch.setenv("MMPROMPT_MODEL", MODEL)
        vlm = request.getfixturevalue("vlm")
        for _, messages in load_task(task).messages():
            assert vlm.send(messages, policy=MediaPolicy([tour])) == "ok"
        for row in load_task(task).requests():
            assert vlm.send(row) == "ok"
        vlm.client.close()
        del request.config.stash[_CLIENT]  # the fixture keeps the client for the whole run
    assert [body["messages"] for body in server.bodies] == [*stream.values()] * 2


@pytest.mark.runners
def test_aisbench(task: str, stream: dict[object, Any]) -> None:
    need("aisbench", "ais_bench")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from mmprompt.plugins.aisbench import MMPromptDataset, MMPromptTask
        from mmprompt.plugins.aisbench.chat_model import Parser
        from mmprompt.plugins.bridge.runner_builder import RunnerBuilder

        rows = MMPromptDataset(path=task, abbr="tour", reader_cfg=READER).test
    template, parser = MMPromptTask(task), Parser(None, RunnerBuilder())
    made = {}
    for row in rows:
        items = parser.parse_template(template.generate_item(row), "gen")
        made[row["id"]] = [{"content" if key == "prompt" else key: i[key] for key in i} for i in items]
    assert made == stream


@pytest.mark.runners
def test_opencompass(task: str, stream: dict[object, Any]) -> None:
    need("opencompass", "opencompass")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from mmprompt.plugins.opencompass import MMPromptDataset, MMPromptTask

        rows = MMPromptDataset(path=task, abbr="tour", reader_cfg=READER).test
    template = MMPromptTask(task)
    assert {row["id"]: template.generate_item(row) for row in rows} == stream


@pytest.mark.runners
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the runner's own
def test_inspect_ai(task: str, stream: dict[object, Any]) -> None:
    need("inspect-ai", "inspect_ai")
    from mmprompt.plugins.inspect_ai import dataset
    from mmprompt.plugins.inspect_ai.messages import wire_of

    assert {sample.id: [wire_of(message) for message in sample.input] for sample in dataset(task)} == stream
