"""Rows whose columns have the names of a published layout keep them, since a task's template may name them."""

from __future__ import annotations

import json
from pathlib import Path

from mmprompt import load_task


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
