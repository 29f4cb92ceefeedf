"""Rows whose columns have the names of a published layout keep them, since a task's template may name them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mmprompt import load_task
from mmprompt.datasets.read import open_dataset, rows_dataset


def test_columns_that_a_layout_renames_can_still_be_named_by_a_template(tmp_path: Path) -> None:
    row = {"input": "Which?", "A": "x", "B": "y", "target": "A"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    for dataset in ({"rows": [row]}, {"path": str(tmp_path / "rows.jsonl")}):
        task = load_task(
            {
                "dataset": dataset,
                "reader_cfg": {"input_columns": ["input", "A"], "output_column": "target"},
                "infer_cfg": {"prompt_template": {"template": "{input} {A} {B}: {target}"}},
            }
        )
        assert [prompt for _, prompt in task.prompts()] == ["Which? x y: "]
        [request] = task.requests()
        assert request.answers == ("A",)
        assert request.choices == ("x", "y")


def test_each_row_of_mvbench_that_names_a_part_of_its_video_is_noted(tmp_path: Path) -> None:
    row = {"video": "v.mp4", "question": "q", "candidates": ["a", "b"], "answer": "a"}
    parts = [{}, {"start": None, "end": None}, {"start": 0.0, "end": 2.5}, {"start": None, "end": 3}, {"start": 1}]
    path = tmp_path / "action.json"
    path.write_text(json.dumps([{**row, **part} for part in parts]), encoding="utf-8")
    dataset = open_dataset(path)
    assert len(list(dataset)) == len(parts)
    what = "the row names a part of its video (start, end), and the whole video is sent"
    assert dataset.notes == [f"{path}:1 start: {what} (and 2 more)"]


@pytest.mark.parametrize(
    ("change", "column", "said"),
    [
        ({"answerKey": "5"}, "answerKey", "the answer '5' is not one of the labels 1, 2"),
        ({"choices": {"text": ["x", None], "label": ["1", "2"]}}, "choices", "choice B is empty"),
        ({"choices": {"text": ["x", "y"], "label": ["1"]}}, "choices", "the choices have not one label each"),
        ({"choices": {"text": ["x", "y"], "label": ["1", "1"]}}, "choices", "the choices have not one label each"),
        ({"choices": None}, "choices", "the row has no choices"),
        ({"question": None}, "question", "the row has no question"),
    ],
)
def test_a_row_of_arc_that_does_not_fit_is_an_error(change: dict[str, object], column: str, said: str) -> None:
    row = {"question": "q", "choices": {"text": ["x", "y"], "label": ["1", "2"]}, "answerKey": "2"}
    good, bad = rows_dataset([row, {**row, **change}])
    assert good.columns["answer"] == "B"
    assert (bad.where.column, bad.what) == (column, said)
