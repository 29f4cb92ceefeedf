"""Rows made ready for a runner: one request each, and all that is wrong known at once."""

import json

import pytest

from mmprompt import DatasetError, TargetError, TaskError, load_task
from mmprompt.plugins.bridge.requests import answer_texts, open_task, request_name, task_requests
from mmprompt.targets.wire_json import Payload


def task(rows, **config):
    return load_task({**config, "dataset": {"rows": rows}})


def test_a_request_holds_id_messages_and_answers(tour):
    coffee = (tour / "media/coffee.jpg").read_bytes()
    rows = [
        {"id": "a", "image": coffee, "question": "What?", "answer": ["coffee", "a coffee"]},
        {"id": 7, "question": "1+1", "answer": 2},
        {"question": "?"},
    ]
    first, second, third = task_requests(task(rows))
    assert (request_name(first), answer_texts(first)) == ("a", ["coffee", "a coffee"])
    image, text = first.unencoded["messages"][0]["content"]
    assert text == {"type": "text", "text": "What?"}
    assert isinstance(image["image_url"]["url"], Payload)
    assert image["image_url"]["url"].part.data == coffee
    assert (second.id, second.messages, second.answers) == (7, [{"role": "user", "content": "1+1"}], (2,))
    assert answer_texts(second) == ["2"]
    assert (third.id, third.answers) == (2, ())


def test_each_turn_of_a_dialogue_is_a_request():
    template = {"round": [{"role": "HUMAN", "prompt": "{q}"}, {"role": "BOT", "prompt": "{answer}"}]}
    infer_cfg = {
        "prompt_template": {"type": "MultiTurnPromptTemplate", "template": template},
        "inferencer": {"type": "MultiTurnGenInferencer", "infer_mode": "every_with_gt"},
    }
    made = task_requests(task([{"id": 5, "q": ["1", "2"], "answer": ["a", "b"]}], infer_cfg=infer_cfg))
    assert [request_name(request) for request in made] == ["5#0", "5#1"]
    assert made[1].messages == [
        {"role": "user", "content": "1"},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "2"},
    ]
    infer_cfg["inferencer"]["infer_mode"] = "every"
    with pytest.raises(TaskError, match="once for each sample"):
        task_requests(task([{"q": ["1"], "answer": ["a"]}], infer_cfg=infer_cfg))


def test_all_that_is_wrong_is_told_before_anything_is_sent(tmp_path, caplog):
    lines = [
        {"id": 1, "image": "gone.jpg"},
        {"id": 2, "question": "?"},
        {"id": 2, "question": "!"},
        {"id": 3, "image": "/etc/passwd"},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(DatasetError) as caught:
        task_requests(open_task(str(path)))
    text = str(caught.value)
    assert text.startswith("3 requests cannot be made; correct their rows, or pass skip_bad=true\n")
    assert f"\n  {path}:1: MM" in text
    assert f"  {path}:3: MM009 two rows have the id 2; give each row its own id (sample 2)\n" in text
    assert f"\n  {path}:4: MM206 " in text
    [left] = task_requests(open_task(str(path)), skip_bad=True)
    assert left.id == 2
    logged = [record.getMessage() for record in caplog.records if record.getMessage().startswith("left out: ")]
    assert logged == [f"left out: {line.strip()}" for line in text.splitlines()[1:]]


@pytest.mark.parametrize("lines", ["", '{"id": 1, "image": "gone.jpg"}'])
def test_a_run_without_a_row_to_ask_is_refused_by_name(tmp_path, lines):
    path = tmp_path / "rows.jsonl"
    path.write_text(lines)
    with pytest.raises(DatasetError, match=r"there is no row to ask"):
        task_requests(open_task(str(path)), skip_bad=True)


def test_of_many_errors_the_first_twenty_are_told(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"id": n, "image": "gone.jpg"}) + "\n" for n in range(23)))
    with pytest.raises(DatasetError, match=r"\n  … and 3 more$"):
        task_requests(open_task(str(path)))


def test_what_the_runner_refuses_is_located():
    def check(request):
        raise TargetError("no", "yes")

    with pytest.raises(DatasetError, match=r"^1 request cannot be made; .*\n  row 1: MM800 no; yes \(sample 9\)$"):
        task_requests(task([{"id": 9, "question": "?"}]), check=check)


def test_labels_and_other_wire_forms_are_refused():
    infer_cfg = {
        "prompt_template": {"type": "PromptTemplate", "template": {"A": "{q} A", "B": "{q} B"}},
        "inferencer": {"type": "PPLInferencer"},
    }
    with pytest.raises(TaskError, match="once for each sample"):
        task_requests(task([{"q": "?"}], infer_cfg=infer_cfg))
    with pytest.raises(TargetError, match="anthropic has another"):
        task_requests(task([{"question": "?"}]), "anthropic")


def test_a_dataset_takes_no_other_rows(tour):
    with pytest.raises(TaskError, match="dataset and train are for a task file"):
        open_task(str(tour / "tour.jsonl"), "other.jsonl")
    opened = open_task(str(tour / "task.yaml"), str(tour / "tour_chat.jsonl"))
    assert opened.dataset.path == str(tour / "tour_chat.jsonl")
