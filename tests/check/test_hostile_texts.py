"""The rules on rows take little time for any text, and no value of a row stops them."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from findings import findings_of

LONG = 50_000
UNITS = (
    " ",
    "<",
    "&",
    "\\",
    "<AIS_",
    "< ",
    "[IMG",
    "<|a ",
    "\u00c3\u00a4",
    "\u00c4\x80",
    "answer ",
    "answer: ",
    "\u200b",
    "(",
    "A ",
)
PIECES = (
    "<AIS_TEXT_START>x<AIS_CONTENT_TAG> y ",
    "<AIS_TEXT_START>\u00c3\u00a4<AIS_CONTENT_TAG>",
    "<AIS_TEXT_START> <AIS_CONTENT_TAG>",
)


def seconds(tmp_path: Path, *rows: dict[str, object]) -> float:
    path = tmp_path / "data.jsonl"
    path.write_text("".join([json.dumps(row) + "\n" for row in rows]))
    began = time.process_time()
    assert [finding.message for finding in findings_of(path) if finding.code == "MM900"] == []
    return time.process_time() - began


@pytest.mark.parametrize("unit", [u if n % 2 else pytest.param(u, marks=pytest.mark.slow) for n, u in enumerate(UNITS)])
def test_a_text_of_one_mark_takes_little_time(tmp_path: Path, unit: str) -> None:
    text = unit * (LONG // len(unit))
    rows: list[dict[str, object]] = [
        {"id": 1, "question": text, "choices": ["a", "b"], "answer": "a"},
        {"id": 2, "question": "Which is it?", "choices": ["a", "b"], "answer": f"A{text}!"},
        {"id": 3, "question": "Which is it?", "choices": ["a", text], "answer": text},
        {"id": 4, "question": f"answer:{text}?", "answer": text[: LONG // 2] + "z"},
        {"id": 5, "question": "Which is it?", "image": text + ".jpg", "answer": text[: LONG // 2]},
        {"id": 6, "content": f"<AIS_TEXT_START>{text}<AIS_CONTENT_TAG>", "answer": "a"},
    ]
    assert seconds(tmp_path, *rows) < 3


@pytest.mark.parametrize("piece", PIECES)
def test_a_text_of_many_segments_takes_little_time(tmp_path: Path, piece: str) -> None:
    row: dict[str, object] = {"id": 1, "content": piece * (LONG // len(piece)) + "What is it?", "answer": "a"}
    assert seconds(tmp_path, row) < 3


@pytest.mark.slow
def test_many_choices_and_answers_take_little_time(tmp_path: Path) -> None:
    many = [f"choice {number}" for number in range(10_000)]
    row: dict[str, object] = {"id": 1, "question": "Which?", "choices": many, "answer": many}
    assert seconds(tmp_path, row, {**row, "choices": ["same"] * 10_000}) < 10


@pytest.mark.parametrize("answer", [10**400, -(10**400), 1e308, " ".join("ABC" * 30) + " !", "[" * 900 + "]" * 900])
def test_no_answer_stops_the_check(tmp_path: Path, answer: object) -> None:
    assert seconds(tmp_path, {"id": 1, "question": "Which?", "choices": ["a", "b"], "answer": answer}) < 3
    nested: object = "a"
    for _ in range(300):
        nested = [nested]
    assert seconds(tmp_path, {"id": 1, "question": "Which?", "choices": ["a", "b"], "answer": nested}) < 3
