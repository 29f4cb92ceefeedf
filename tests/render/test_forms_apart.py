"""What one row of a form has and another has not: nothing of a row comes into the request of the next."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from form_rows import by_form, template

from mmprompt import load_task, render_file
from mmprompt.render.builder import FailedRow, RequestBuilder
from mmprompt.render.renderer import Renderer

TOUR = Path(__file__).parents[2] / "fixtures" / "tour"
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
PARTS = {"video": "{video}", "text": "{question}"}


class Worded:
    """An object with a text of its own."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


def task_of(rows: list[dict[str, Any]], form: Any = None, kind: str = "PromptTemplate", **config: Any) -> Any:
    infer = {} if form is None else {"infer_cfg": template(kind, form)}
    return load_task({"dataset": {"rows": rows}, "media": {"roots": [str(TOUR)]}, **infer, **config})


def test_frames_in_a_list_are_those_of_the_row() -> None:
    rows = [{"id": n, "question": "q", "video": [[f"a{n}.png", f"b{n}.png"]]} for n in range(3)]
    made = task_of(rows, {"round": [{"role": "HUMAN", "prompt_mm": PARTS}]}, "MMPromptTemplate").messages()
    sources = [messages[0].parts[0].source for _, messages in made]
    assert sources == [[f"a{n}.png", f"b{n}.png"] for n in range(3)]
    assert {type(name) for source in sources for name in source} == {str}


def test_the_id_of_a_row_is_not_its_tagged_column_of_that_name(tmp_path: Path) -> None:
    rows = [{"uid": n, "id": f"<AIS_TEXT_START>t{n}<AIS_CONTENT_TAG>", "question": "q"} for n in range(3)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {
        "dataset": {"path": str(tmp_path / "rows.jsonl"), "columns": {"uid": "id"}},
        "infer_cfg": template("MMPromptTemplate", {"round": [{"role": "HUMAN", "prompt_mm": {"text": "{id}"}}]}),
        "reader_cfg": {"input_columns": ["id"], "tagged_columns": ["id"]},
    }
    render_file(load_task(config), str(tmp_path / "out"))
    lines = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    walked = [Renderer(load_task(config), formed=False).render(row) for row in load_task(config).samples()]
    assert lines == [json.loads(b"".join(made.chunks)) for made in walked if not isinstance(made, FailedRow)]
    assert all(type(line["id"]) in (int, str) for line in lines)


@pytest.mark.parametrize("target", ["anthropic", "gemini", "vllm"])
def test_an_object_without_a_text_is_an_empty_text(target: str) -> None:
    rows = [{"id": n, "question": Worded(text)} for n, text in enumerate(("a", "", " ", "b"))]
    task = task_of(rows, {"round": [{"role": "HUMAN", "prompt": "{question}"}]})
    outcomes = []
    for formed in (True, False):
        builder = RequestBuilder(task, target, formed=formed)
        outcomes.append([str(getattr(builder.prepare(row), "error", "sent")) for row in task.samples()])
    assert outcomes[0] == outcomes[1]


def test_a_caller_may_change_the_tool_calls_of_a_row() -> None:
    spoken = [
        {"role": "BOT", "prompt": "x", "tool_calls": [CALL]},
        {"role": "TOOL", "prompt": "r", "tool_call_id": "a"},
    ]
    form = {"round": [{"role": "HUMAN", "prompt": "{question}"}, *spoken]}
    names = []
    for _, messages in task_of([{"id": n, "question": f"q{n}"} for n in range(3)], form).messages():
        names.append(messages[1].tool_calls[0]["function"]["name"])
        messages[1].tool_calls[0]["function"]["name"] = "changed"
    assert names == ["f"] * 3


def test_keys_beside_a_file_are_those_of_its_part() -> None:
    def row(number: int, detail: object) -> dict[str, Any]:
        picture = {"type": "image_url", "image_url": {"url": "media/sign.png", "detail": detail}}
        return {"id": number, "content": [picture] * 3 + [{"type": "text", "text": "t"}]}

    task = task_of([row(0, 1), row(1, True), row(2, 1.0)])
    requests = [json.loads(request.body()) for request in task.requests()]
    details = [request["messages"][0]["content"][0]["image_url"]["detail"] for request in requests]
    assert list(map(repr, details)) == ["1", "True", "1.0"]


def test_loose_text_with_a_slot_leaves_rows_their_form() -> None:
    form = {"begin": ["Look at {question}"], "round": [{"role": "HUMAN", "prompt": "{question}"}]}
    assert by_form(task_of([{"id": n, "question": f"what is {n}?"} for n in range(10)], form)) == 10


def test_rows_that_hardly_come_again_are_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmprompt.tasks.forms.MOST_OF_A_KIND", 4)
    rows = [{"id": n, "question": "what?", "points": [0.5] * n} for n in range(1, 20)]
    task = task_of(rows)
    builder = RequestBuilder(task)
    bodies = [builder.prepare(row) for row in task.samples()]
    assert not [made for made in bodies if isinstance(made, FailedRow)]
    assert len(builder.forms) <= 5
    assert builder.forms.requests(next(iter(task.samples()))) is None


def test_choices_that_are_numbers_leave_rows_their_form() -> None:
    rows = [{"id": n, "question": f"what is {n}?", "options": [n, n + 1, 2.5], "answer": "A"} for n in range(10)]
    task = task_of(rows)
    assert by_form(task) == 10
    requests = list(task.requests())
    assert [request.choices for request in requests] == [(str(n), str(n + 1), "2.5") for n in range(10)]
    assert pickle.loads(pickle.dumps(requests[3])).choices == ("3", "4", "2.5")
    unread = next(iter(task_of([{"id": 1, "question": "q", "options": ["x"], "note": "n" * 100_000}]).requests()))
    assert len(pickle.dumps(unread)) < 10_000
