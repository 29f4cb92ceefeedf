"""``Task.requests``: the whole path of each row, ready to be sent."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from mmprompt import MMPromptError, TargetError, TaskError, load_task
from mmprompt.cli import main
from mmprompt.render.renderer import Renderer

ROUND = [{"role": "HUMAN", "prompt": "{q}"}, {"role": "BOT", "prompt": "{answer}"}]


def rows_task(*rows: dict[str, Any], **config: Any) -> Any:
    return load_task({"dataset": {"rows": list(rows)}, **config})


def template(kind: str, form: Any, inferencer: str = "GenInferencer", **arguments: Any) -> dict[str, Any]:
    return {
        "prompt_template": {"type": kind, "template": form},
        "inferencer": {"type": inferencer, **arguments},
    }


def test_a_request_is_the_mapping_of_an_sdks_arguments() -> None:
    config = {"generation": {"temperature": 0, "repetition_penalty": 1.1}, "model": "qwen"}
    infer = template("PromptTemplate", {"round": [ROUND[0]]}, max_out_len=7, stopping_criteria=["END"])
    [request] = rows_task({"id": 3, "q": "1+1"}, model=config, infer_cfg=infer).requests()
    assert dict(request) == {
        "messages": [{"role": "user", "content": "1+1"}],
        "temperature": 0,
        "max_tokens": 7,
        "stop": ["END"],
        "extra_body": {"repetition_penalty": 1.1},
    }
    assert json.loads(request.body()) == {
        "messages": [{"role": "user", "content": "1+1"}],
        "temperature": 0,
        "repetition_penalty": 1.1,
        "max_tokens": 7,
        "stop": ["END"],
        "model": "qwen",
    }
    assert json.loads(request.body("other"))["model"] == "other"
    assert (request.id, request.turn, request.label) == (3, None, None)


SAID = [{"role": "user", "content": "Hi"}]
OWN = {"model": "row-model", "temperature": 0.5, "max_tokens": 3, "min_p": 0.1}


def batch_requests(target: str = "vllm", **config: Any) -> list[Any]:
    line = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {**OWN, "messages": SAID}}
    return list(rows_task(line, **config).requests(target))


def test_a_batch_line_keeps_its_own_settings_in_the_body_and_for_the_sdk() -> None:
    generation = {"temperature": 1, "max_completion_tokens": 9, "seed": 5}
    [request] = batch_requests(model={"model": "task-model", "generation": generation})
    assert json.loads(request.body()) == {**OWN, "seed": 5, "messages": SAID}
    assert json.loads(request.body("asked"))["model"] == "asked"
    assert dict(request) == {
        "messages": SAID, "temperature": 0.5, "max_tokens": 3, "seed": 5, "extra_body": {"min_p": 0.1},
    }  # fmt: skip
    assert request.notes == ()


def test_what_a_caller_does_to_an_argument_changes_no_later_one() -> None:
    line = {"custom_id": "a", "body": {"messages": SAID, "stop": ["END"]}}
    [request] = rows_task(line).requests()
    request["stop"].append("more")
    assert request["stop"] == ["END"]


@pytest.mark.parametrize("target", ["anthropic", "gemini"])
def test_a_wire_form_that_has_other_keys_says_which_settings_it_does_not_get(target: str) -> None:
    [request] = batch_requests(target, model={"generation": {"max_tokens": 9}})
    assert request.notes == (f"{target} does not get the Batch line's own model, temperature, max_tokens, min_p",)
    body = json.loads(request.body())
    assert body.get("max_tokens", body.get("generationConfig", {}).get("max_tokens")) == 9
    assert "row-model" not in str(body)


def test_the_bodies_are_those_of_the_batch_file(tour: Path, tmp_path: Path) -> None:
    task = {
        "dataset": str(tour / "tour.jsonl"),
        "model": {"model": "m", "generation": {"max_tokens": 9}},
        "media": {"max_side": 64},
    }
    (tmp_path / "task.json").write_text(json.dumps(task), encoding="utf-8")
    out = tmp_path / "batch.jsonl"
    assert main(["render", str(tmp_path / "task.json"), "--emit", "batch", "-o", str(out)]) == 0
    lines = out.read_bytes().splitlines()
    bodies = [request.body() for request in load_task(tmp_path / "task.json").requests()]
    assert len(lines) == len(bodies) == 25
    assert all(line.endswith(b'"body":' + body + b"}") for line, body in zip(lines, bodies, strict=True))


def test_the_messages_are_those_of_the_rendered_lines(tour: Path, tmp_path: Path) -> None:
    for target, keys in (("vllm", ["messages"]), ("anthropic", ["messages", "system"]), ("gemini", ["contents"])):
        out = tmp_path / f"{target}.jsonl"
        main(["render", str(tour / "tour.jsonl"), "--target", target, "-o", str(out)])
        lines = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
        errors: list[MMPromptError] = []
        requests = list(load_task(tour / "tour.jsonl").requests(target, on_error=errors.append))
        assert [(r.id, *(r.get(key) for key in keys)) for r in requests] == [
            (line["id"], *(line.get(key) for key in keys)) for line in lines
        ]
        assert len(requests) + len(errors) == 25


def test_each_turn_has_its_own_answer() -> None:
    row = {"id": "d", "q": ["1+1", "2+2"], "answer": ["2", ["4", "four"]]}
    infer = template("MultiTurnPromptTemplate", {"round": ROUND}, "MultiTurnGenInferencer", infer_mode="every_with_gt")
    first, second = rows_task(row, infer_cfg=infer).requests()
    assert [(r.turn, r.answers) for r in (first, second)] == [(0, ("2",)), (1, ("4", "four"))]
    infer["inferencer"]["infer_mode"] = "last"
    [last] = rows_task(row, infer_cfg=infer).requests()
    assert (last.turn, last.answers) == (1, ("4", "four"))


@pytest.mark.parametrize("emit", ["messages", "prompt", "string"])
@pytest.mark.parametrize(
    ("mode", "answers"),
    [("every", {0: "2"}), ("every_with_gt", {0: "2", 1: ["4", "four"]}), ("last", {1: ["4", "four"]})],
)
def test_each_line_has_the_answer_of_its_turn(emit: str, mode: str, answers: Any) -> None:
    row = {"id": "d", "q": ["1+1", "2+2"], "answer": ["2", ["4", "four"]]}
    infer = template("MultiTurnPromptTemplate", {"round": ROUND}, "MultiTurnGenInferencer", infer_mode=mode)
    task = rows_task(row, infer_cfg=infer)
    [rendered] = map(Renderer(task, emit=emit).render, task.samples())
    lines = list(map(json.loads, b"".join(rendered.chunks).splitlines()))
    assert {line["turn"]: line["answer"] for line in lines} == answers


def test_a_turn_that_is_asked_twice_has_one_answer_and_one_behind_the_answers_has_none() -> None:
    twice = [*ROUND, {"role": "HUMAN", "prompt": "Sure?"}, {"role": "BOT", "prompt": "{answer}"}]
    infer = template("MultiTurnPromptTemplate", {"round": twice}, "MultiTurnGenInferencer", infer_mode="every_with_gt")
    row = {"id": "d", "q": ["1+1", "2+2"], "answer": ["2", "4"]}
    requests = rows_task(row, infer_cfg=infer).requests()
    assert [(r.turn, r.answers) for r in requests] == [(0, ("2",)), (1, ("2",)), (2, ("4",)), (3, ("4",))]
    unsaid = [{"role": "HUMAN", "prompt": "{q}"}, {"role": "BOT"}]
    infer = template("MultiTurnPromptTemplate", {"round": unsaid}, "MultiTurnGenInferencer", infer_mode="every_with_gt")
    requests = rows_task({**row, "answer": ["2"]}, infer_cfg=infer).requests()
    assert [r.answers for r in requests] == [("2",), ()]


def test_each_label_is_a_request() -> None:
    infer = template("PromptTemplate", {"A": "{q} yes", "B": "{q} no"}, "PPLInferencer")
    made = list(rows_task({"id": 1, "q": "really?", "answer": "A"}, infer_cfg=infer).requests())
    assert [(r.label, r.messages) for r in made] == [
        ("A", [{"role": "user", "content": "really? yes"}]),
        ("B", [{"role": "user", "content": "really? no"}]),
    ]


def test_the_media_that_are_sent_are_listed(tour: Path) -> None:
    rows = {"image": str(tour / "media/coffee.jpg"), "images": ["https://example.com/a.png"], "question": "?"}
    task = rows_task(rows, media={"roots": [str(tour)]})
    [request] = task.requests(changes={"max_side": 32})
    read, named = request.media
    assert (read.modality, read.media_type, named.modality) == ("image", "image/jpeg", "image")
    assert read.size < (tour / "media/coffee.jpg").stat().st_size
    assert len(read.sha256) == 64
    assert read.changes
    assert (named.origin, named.size, named.sha256) == ("https://example.com/a.png", 0, "")


def test_an_error_is_raised_or_given_and_the_other_rows_come() -> None:
    rows = [{"id": 1, "question": "a"}, {"id": 2, "image": "/etc/passwd", "question": "b"}, {"id": 3, "question": "c"}]
    errors: list[MMPromptError] = []
    assert [r.id for r in rows_task(*rows).requests(on_error=errors.append)] == [1, 3]
    assert [error.where.sample for error in errors] == ["2"]
    requests = rows_task(*rows).requests()
    assert next(requests).id == 1
    with pytest.raises(MMPromptError, match="media root"):
        next(requests)


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"max_sid": 3}, "did you mean 'max_side'"), ({"mode": "file"}, "unknown change 'mode'")],
)
def test_an_unknown_change_is_refused_when_the_stream_is_made(changes: dict[str, object], says: str) -> None:
    with pytest.raises(TaskError, match=says):
        rows_task({"question": "q"}).requests(changes=changes)
    with pytest.raises(TargetError, match="did you mean 'vllm'"):
        rows_task({"question": "q"}).requests("vlm")


def test_anthropic_says_which_key_gives_the_length_of_the_reply() -> None:
    [request] = rows_task({"question": "q"}).requests("anthropic")
    with pytest.raises(TaskError, match="max_out_len"):
        request.body("claude")
    [request] = rows_task({"question": "q"}).requests("hf")
    with pytest.raises(TargetError, match=r"request\.messages"):
        request.body()


def test_the_key_that_anthropic_asks_for_needs_no_template() -> None:
    rows = {"rows": [{"question": "q"}]}
    [request] = load_task({"model": {"generation": {"max_tokens": 7}}}, rows).requests("anthropic")
    assert json.loads(request.body("claude"))["max_tokens"] == 7
    [request] = load_task({}, rows).requests("anthropic")
    with pytest.raises(TaskError, match=r"set model\.generation\.max_tokens, or beside a template"):
        request.body("claude")


def test_a_request_is_immutable_and_pickles(tour: Path) -> None:
    request = next(load_task(tour / "tour.jsonl").requests())
    with pytest.raises(AttributeError, match="id"):
        request.id = 2  # type: ignore[misc]
    again = pickle.loads(pickle.dumps(request))
    assert (again.id, again.body(), again.answers, again.where) == (
        request.id,
        request.body(),
        request.answers,
        request.where,
    )


@pytest.mark.parametrize(
    ("columns", "choices"),
    [
        ({"A": "red", "B": "blue", "C": ""}, ("red", "blue")),
        ({"options": ["red", 2]}, ("red", "2")),
        ({"choices": {"A": "red", "B": "blue"}}, ("red", "blue")),
        ({"candidates": "['red', 'blue']"}, ("red", "blue")),
        ({"choice_a": "red", "choice_b": "blue"}, ("red", "blue")),
        ({"A": "red"}, ()),
        ({"options": "red"}, ()),
    ],
)
def test_the_choices_of_a_row(columns: dict[str, object], choices: tuple[str, ...]) -> None:
    [request] = rows_task({"question": "q", **columns}).requests()
    assert request.choices == choices


def test_a_file_that_a_row_names_often_is_bounded_and_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0" + bytes(1_000_000))
    from mmprompt import MediaPolicy

    policy = MediaPolicy([str(tmp_path)], max_request_bytes=10_000_000, max_bytes=2_000_000)
    row = {"id": 1, "audio": ["a.wav"] * 9, "question": "?"}
    [request] = rows_task(row).requests(policy=policy)
    assert len(request.media) == 9
    with pytest.raises(MMPromptError, match="max_request_bytes"):
        list(rows_task({**row, "audio": ["a.wav"] * 11}).requests(policy=policy))
