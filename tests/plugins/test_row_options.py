"""The arguments that runners' users give, and the markers under which requests pass through a runner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mmprompt import MMPromptError, load_task
from mmprompt.errors import TargetError, TaskError
from mmprompt.plugins.bridge.harness_rows import MarkedRequests
from mmprompt.plugins.bridge.row_options import asked_rows
from mmprompt.plugins.bridge.single_prompt import single_prompt

OPTION = "--metadata {name}={value}"


def rows_file(folder: Path, *rows: dict[str, Any]) -> str:
    path = folder / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "no task file or dataset is given"),
        ({"path": 3}, "path is '3'; give a text"),
        ({"path": "x", "medai_root": "."}, "unknown argument 'medai_root'; did you mean 'media_root'?"),
        ({"path": "x", "fetch": "yes"}, "fetch is 'yes'; give true or false"),
        ({"path": "x", "allow_domain": [1]}, "give a text, or a list of texts"),
    ],
)
def test_a_wrong_argument_is_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(TaskError) as told:
        asked_rows(given, OPTION)
    assert said in str(told.value)


def test_hints_name_the_runner_s_own_arguments(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "cup.jpg").write_bytes(b"\xff\xd8\xff")
    path = rows_file(tmp_path / "in", {"image": "../cup.jpg", "question": "?"})
    with pytest.raises(MMPromptError) as told:
        asked_rows({"path": path}, OPTION)
    assert "--metadata media_root=DIR" in str(told.value)
    assert "--media-root" not in str(told.value)
    with pytest.raises(MMPromptError) as told:
        asked_rows({"path": path, "allow_domain": "example.com"}, OPTION)
    assert "add --metadata fetch=true" in str(told.value)


def test_an_argument_is_the_caller_s_permission(tour: Path, tmp_path: Path) -> None:
    path = rows_file(tmp_path, {"image": "media/coffee.jpg", "question": "?"})
    asked = asked_rows({"path": path, "media_root": str(tour), "max_side": 32}, OPTION)
    [medium] = asked.requests[0].media
    assert medium.changes
    assert not asked.scored


def test_rows_without_an_answer_are_told_if_others_have_one(tmp_path: Path) -> None:
    path = rows_file(tmp_path, {"question": "1"}, {"question": "2", "answer": "x"}, {"question": "3"})
    with pytest.raises(MMPromptError) as told:
        asked_rows({"path": path}, OPTION)
    assert str(told.value).count("no answer to score against") == 2
    asked = asked_rows({"path": path, "skip_bad": True}, OPTION)
    assert asked.scored
    assert (asked.score(asked.requests[0], "X."), asked.score(asked.requests[0], "y")) == (1.0, 0.0)


def test_a_scorer_needs_answers(tmp_path: Path) -> None:
    path = rows_file(tmp_path, {"question": "1"})
    with pytest.raises(MMPromptError, match="no answer to score against"):
        asked_rows({"path": path, "scorer": "contains"}, OPTION)


def test_a_marker_stands_for_its_request_alone(tmp_path: Path) -> None:
    requests = list(load_task(rows_file(tmp_path, {"question": "1"}, {"question": "2"})).requests())
    marked = MarkedRequests()
    first, second = marked.add(requests)
    assert first.startswith("mmprompt:0:")
    assert (marked.request(first), marked.request(second)) == tuple(requests)
    [other] = MarkedRequests().add(load_task(rows_file(tmp_path, {"question": "other"})).requests())
    with pytest.raises(TaskError, match="is the marker of another run; delete the runner's cache"):
        marked.request(other)
    for prompt in (f"Be brief. {first}", [first], "1+1=?"):
        with pytest.raises(TaskError, match="asks rows of mmprompt's tasks only"):
            marked.request(prompt)
    with pytest.raises(TaskError, match="use --model ours"):
        marked.require_model("use --model ours")
    marked.model = True
    marked.require_model("use --model ours")


def test_what_one_prompt_cannot_hold_is_named(tour: Path) -> None:
    requests = {str(r.id): r for r in load_task(str(tour / "tour.jsonl")).requests()}
    assert [type(p).__name__ for p in single_prompt(requests["tour-01"], "it", ("image",)).parts] == [
        "MediaPart",
        "TextPart",
    ]
    for name, said in {
        "tour-04": "message 1, part 1: it cannot carry audio",
        "tour-15": "it would fetch the image that goes by its URL",
    }.items():
        with pytest.raises(TargetError) as told:
            single_prompt(requests[name], "it", ("image",))
        assert said in str(told.value)
    chats = {str(r.id): r for r in load_task(str(tour / "tour_chat.jsonl")).requests()}
    several = next(r for r in chats.values() if len(r["messages"]) > 2)
    with pytest.raises(TargetError, match="it has one user message for a row, and the request has"):
        single_prompt(several, "it", ("image", "audio", "video"))
