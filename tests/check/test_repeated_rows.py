"""The rules on rows that ask the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from findings import findings_of


def conflicts(tmp_path: Path, rows: list[dict[str, object]]) -> list[tuple[int | None, str]]:
    """Return row and message of the findings of MM710."""
    (tmp_path / "data.jsonl").write_text("".join([json.dumps(row) + "\n" for row in rows]))
    return [(f.row, f.message) for f in findings_of(tmp_path / "data.jsonl") if f.code == "MM710"]


def captions(scenes: int, each: int) -> list[dict[str, object]]:
    """Return rows that ask the same of each scene, with another answer each."""
    return [
        {"id": f"{scene}-{number}", "question": f"Describe scene {scene}.", "answer": f"It is thing {number}."}
        for scene in range(scenes)
        for number in range(each)
    ]


@pytest.mark.parametrize("more", [[], captions(16, 1)])
def test_a_dataset_with_several_answers_to_each_question_is_told_once(
    tmp_path: Path, more: list[dict[str, object]]
) -> None:
    [(row, message)] = conflicts(tmp_path, captions(4, 5) + [{**each, "id": f"x{each['id']}"} for each in more[4:]])
    assert row is None
    assert message == f"20 of {20 + len(more[4:])} rows ask what another row asks, and have another answer"


@pytest.mark.parametrize(("scenes", "alone"), [(1, 0), (9, 0), (12, 25)])
def test_a_few_rows_with_another_answer_are_told_each(tmp_path: Path, scenes: int, alone: int) -> None:
    rows = captions(scenes, 2) + [{"id": n, "question": f"What is {n}?", "answer": "it"} for n in range(alone)]
    assert [row for row, _ in conflicts(tmp_path, rows)] == [2 * scene + 1 for scene in range(scenes)]
