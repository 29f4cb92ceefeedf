"""The findings of the engine itself: errors and notes of rows with their places, in the order of rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from findings import findings_of


@pytest.mark.parametrize("workers", [1, 2])
def test_findings_come_in_the_order_of_rows_with_the_place_of_each(tmp_path: Path, workers: int) -> None:
    rows = [
        '{"id": "a", "question": "?", "image": "nowhere.jpg", "answer": "x"}',
        "{broken",
        json.dumps({"id": "c", "question": "?", "answer": None}),
    ]
    path = tmp_path / "data.jsonl"
    path.write_text("\n".join(rows) + "\n")
    found = [(f.code, f.line, f.row, f.id, f.column) for f in findings_of(path, workers) if f.row is not None]
    assert found == [
        ("MM201", 1, 0, "a", "image"),
        ("MM002", 2, 1, None, None),
        ("MM701", 3, 2, "c", "answer"),
    ]
