"""Columns of benchmarks as the hub has them: choices and answers arrive as they are meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mmprompt import check_dataset, dataset_task, load_task
from mmprompt.datasets.read import rows_dataset
from mmprompt.run.scorers import answers_of, scorer_of

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
MED = {"question": "q", "opa": "ice", "opb": "fire", "opc": "air", "opd": "4", "cop": 2, "exp": None}


def texts_of(rows: list[dict[str, Any]]) -> list[str]:
    """Return the texts of each row's messages, a medium as its modality."""
    shown = []
    for _, messages in load_task({"dataset": {"rows": rows}}).messages():
        parts = [getattr(part, "text", None) or f"<{part.modality}>" for m in messages for part in m.parts]
        shown.append("".join(parts))
    return shown


def test_an_open_question_of_mmmu_may_have_several_answers() -> None:
    row = {"question": "How many? <image 1>", "options": "[]", "image_1": PNG, "question_type": "open"}
    several, one, interval = rows_dataset(
        [{**row, "answer": answer} for answer in ("['24', 'twenty-four']", "24", "[0, 1]")]
    )
    assert several.columns["answer"] == ["24", "twenty-four"]
    assert (one.columns["answer"], interval.columns["answer"]) == ("24", "[0, 1]")
    assert scorer_of(None)("twenty-four", answers_of(several.columns["answer"]), ()) == 1


@pytest.mark.parametrize("question", ["See <image 1>. Which?", "Which?"])
def test_mmmu_pro_is_mmmu_without_the_type_of_the_question(question: str) -> None:
    options = "['the cat', 'a dog']" if "<" in question else "['<image 1>', 'a dog']"
    row = {"id": 1, "question": question, "options": options, "image_1": PNG, "image_2": None, "answer": "B"}
    [shown] = texts_of([row])
    assert shown.count("<image>") == 1
    assert "<image 1>" not in shown
    assert shown.endswith("B. a dog")


@pytest.mark.parametrize("nothing", [None, "", " ", float("nan"), {"bytes": None, "path": None}])
def test_a_column_of_mmmu_without_a_picture_gives_none(nothing: object) -> None:
    row = {"question": "See <image 1>. Which?", "options": "['a cat', 'a dog']", "image_1": PNG, "image_2": nothing}
    assert texts_of([row]) == ["See <image>. Which?\nA. a cat\nB. a dog"]


def test_medmcqa_sends_its_choices_and_its_number_counts_from_0(tmp_path: Path) -> None:
    rows = [MED, {**MED, "cop": -1}, {key: value for key, value in MED.items() if key != "cop"}]
    (tmp_path / "med.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    task = dataset_task(tmp_path / "med.jsonl")
    assert task.dataset.format == "medmcqa"
    requests = list(task.requests())
    assert [request.answers for request in requests] == [(2,), (), ()]
    assert {request.choices for request in requests} == {("ice", "fire", "air", "4")}
    assert texts_of(rows) == ["q\nA. ice\nB. fire\nC. air\nD. 4"] * 3
    assert task.notes() == []
    mapped = dataset_task(tmp_path / "med.jsonl", map_columns={"cop": "answer"})
    assert next(mapped.requests()).answers == (2,)
    assert scorer_of(None)("C", requests[0].answers, requests[0].choices) == 1


@pytest.mark.parametrize("names", [("option_1", "option_2"), ("Option 1", "Option 2"), ("choice0", "choice1")])
def test_numbered_columns_of_choices_are_read_and_a_number_as_the_answer_is_told(names: tuple[str, str]) -> None:
    row = {"question": "q", names[0]: "cat", names[1]: "dog", "answer": "B"}
    assert texts_of([row]) == ["q\nA. cat\nB. dog"]
    from_1 = names[0].endswith("1")
    told = (
        "the answer is a number, which counts from 0, and the choices count from 1 "
        f"('{names[0]}'); set eval_cfg.index_base to 1 in the task, or pass --index-base 1 to mmprompt score"
    )
    template = {"prompt_template": {"template": "{question}\n{options}"}}
    for answer, numbers in ((1, True), ("2", True), ("B", False), ("dog", False), (None, False)):
        for config in ({}, {"infer_cfg": template}, {"eval_cfg": {"index_base": 1}}):
            task = load_task({**config, "dataset": {"rows": [{**row, "answer": answer}]}})
            assert len(list(task.messages())) == 1
            expected = [f"the row: {told}"] if numbers and from_1 and "eval_cfg" not in config else []
            assert task.notes() == expected


@pytest.mark.parametrize("name", ["label", "correct_answer", "answerKey", "Answer_Idx", "cls"])
def test_a_column_that_looks_like_the_answers_is_told_with_what_to_type(name: str, tmp_path: Path) -> None:
    row = {"question": "q", "A": "cat", "B": "dog", name: "B"}
    note = (
        f"the row: no column 'answer', so rows go out without an answer, and '{name}' looks like it; "
        f"add --map {name}=answer"
    )
    for config, notes in (
        ({}, [note]),
        ({"reader_cfg": {"output_column": None}}, [f"the row: '{name}' is not sent; use a task with a template"]),
        ({"reader_cfg": {"output_column": name}}, []),
    ):
        task = load_task({**config, "dataset": {"rows": [row]}})
        [request] = task.requests()
        assert request.answers == (() if notes else ("B",))
        assert task.notes() == notes
    (tmp_path / "rows.jsonl").write_text(json.dumps(row), encoding="utf-8")
    mapped = dataset_task(tmp_path / "rows.jsonl", map_columns={name: "answer"})
    assert [request.answers for request in mapped.requests()] == [("B",)]
    assert mapped.notes() == []


def test_a_picture_that_stands_under_the_name_of_an_answer_is_none() -> None:
    task = load_task({"dataset": {"rows": [{"question": "q", "target": "cat.jpg"}]}})
    list(task.messages())
    assert [note.code for note in task.notes()] == ["MM605"]


@pytest.mark.parametrize(
    ("row", "code", "said"),
    [
        ({"question": "See <image 2>", "image": PNG}, "MM107", "the question holds a mark such as <image>, which"),
        ({"question": "<video>\nq", "video": "a.mp4"}, "MM107", "the question holds a mark such as <video>, which"),
        ({"question": "q", "hint": "nan"}, "MM010", "the hint or a choice is 'nan', which is sent as text"),
        ({"question": "q", "A": "x", "B": "y", "C": "nan"}, "MM010", "the hint or a choice is 'nan'"),
        ({"question": "What does <image> mean in SVG?"}, "", ""),
        ({"question": "1 < 2", "image": PNG, "hint": "none", "A": "None", "B": "N/A"}, "", ""),
    ],
)
def test_a_mark_or_a_missing_value_that_is_sent_as_text_is_told(row: dict[str, Any], code: str, said: str) -> None:
    task = load_task({"dataset": {"rows": [{"answer": "a", **row}]}})
    list(task.messages())
    assert [note.code for note in task.notes()] == ([code] if code else [])
    assert said in str(task.notes())
    found = check_dataset(task, select=("MM107", "MM010"), decode=False)
    assert [finding.code for finding in found] == ([code] if code else [])


def test_mathvision_sends_the_picture_and_not_its_name() -> None:
    row = {
        "id": "1",
        "question": "Which?",
        "image": "images/1.jpg",
        "decoded_image": {"bytes": b"GIF89a", "path": None},
    }
    chosen, asked = {**row, "options": ["2", "3"], "answer": "B"}, {**row, "options": [], "answer": "4"}
    assert texts_of([chosen, asked]) == ["<image>Which?\nA. 2\nB. 3", "<image>Which?"]
    first, second = rows_dataset([chosen, asked])
    assert first.columns["image"] == second.columns["image"] == row["decoded_image"]
    assert "options" not in second.columns
