"""Requests whose target, id, tools or settings are unusual."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from mmprompt import load_task, register_target, render_file, to_openai
from mmprompt.errors import MMPromptError
from mmprompt.messages import MediaRef, Message
from mmprompt.targets import limits

URL = "http://example.com/cat.jpg"
CALL = {"id": "c1", "type": "function", "function": {"name": "open", "arguments": '{"url": "https://x.example/a.png"}'}}
CHAT = [
    {"role": "user", "content": [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": URL}}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "name": "open", "content": "opened"},
]


@pytest.fixture
def secure(monkeypatch: pytest.MonkeyPatch) -> str:
    """A target that takes https addresses only."""
    monkeypatch.setattr(limits, "_REGISTERED", dict(limits._REGISTERED))
    register_target("secure", like="openai", schemes=["https"])
    return "secure"


@pytest.mark.parametrize("chat", [True, False])
def test_an_address_of_a_scheme_that_the_target_lacks_is_an_error_of_its_row(secure: str, chat: bool) -> None:
    with pytest.raises(MMPromptError, match="has the scheme http"):
        to_openai([Message("user", [MediaRef("image", URL, name=URL)])], secure)
    row: dict[str, Any] = {"messages": CHAT[:1]} if chat else {"image": URL, "question": "What?"}
    errors: list[MMPromptError] = []
    task = load_task({"dataset": {"rows": [{**row, "id": 1}, {**row, "id": 2}]}})
    assert list(task.requests(secure, on_error=errors.append)) == []
    assert ["has the scheme http" in str(error) for error in errors] == [True, True]


@pytest.mark.parametrize("target", ["vllm", "openai", "anthropic", "gemini", "hf"])
def test_the_media_of_a_request_are_those_in_its_content(target: str) -> None:
    url = URL.replace("http:", "https:")
    chat = json.loads(json.dumps(CHAT).replace(URL, url))
    (request,) = load_task({"dataset": {"rows": [{"id": 1, "messages": chat}]}}).requests(target)
    assert [(medium.modality, medium.origin) for medium in request.media] == [("image", url)]
    assert "1 media, 0 bytes" in repr(request)


def test_an_id_that_no_batch_can_hold_is_an_error_of_its_row(tmp_path: Path) -> None:
    rows = [{"id": name, "question": "What?"} for name in ("a", dt.date(2026, 1, 2), "c")]
    errors: list[MMPromptError] = []
    task = load_task({"dataset": {"rows": rows}, "model": {"model": "m"}})
    render_file(task, str(tmp_path / "out.jsonl"), emit="batch", on_error=errors.append)
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["custom_id"] for line in lines] == ["a", "c"]
    assert [(error.code, error.what) for error in errors] == [("MM007", "the id is date")]


def test_settings_that_name_messages_leave_a_body_its_messages() -> None:
    infer = {
        "prompt_template": {"type": "PromptTemplate", "template": "{question}"},
        "inferencer": {"type": "GenInferencer", "generation_kwargs": {"messages": [], "temperature": 0}},
    }
    (request,) = load_task({"dataset": {"rows": [{"id": 1, "question": "What?"}]}, "infer_cfg": infer}).requests()
    body = json.loads(request.body())
    assert body == {"temperature": 0, "messages": [{"role": "user", "content": "What?"}]}
