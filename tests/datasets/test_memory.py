from __future__ import annotations

import tracemalloc

import pytest

from mmprompt.datasets.read import open_dataset, rows_dataset

ROWS = 200_000
HEAD = {"jsonl": "", "csv": "id,question,score\n", "json": "["}
ROW = {
    "jsonl": '{{"id": "q-{0}", "question": "What is {0}?", "score": {1}}}\n',
    "csv": 'q-{0},"What is\n{0}?",{1}\n',
    "json": '{{"id": "q-{0}", "question": "What is {0}?", "score": {1}}},\n',
}
TAIL = {"jsonl": "", "csv": "", "json": "{}]"}


def peak(rows) -> int:
    tracemalloc.start()
    try:
        for _ in rows:
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("format_name", ["jsonl", "csv", "json"])
def test_memory_does_not_grow_with_rows(tmp_path, format_name):
    path = tmp_path / f"many.{format_name}"
    with open(path, "w", encoding="utf-8") as file:
        file.write(HEAD[format_name])
        file.writelines(ROW[format_name].format(n, 0.5 if n % 50 else "NaN") for n in range(ROWS))
        file.write(TAIL[format_name])
    dataset = open_dataset(path)
    assert dataset.format == format_name
    assert peak(dataset) < 2_000_000
    assert len(dataset.notes) < 20


def test_rows_given_by_a_generator_are_not_kept():
    assert peak(rows_dataset({"id": n} for n in range(ROWS))) < 500_000
