from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from mmprompt.datasets.read import open_dataset, rows_dataset

ROWS = 120_000
HEAD = {"jsonl": "", "csv": "id,question,score\n", "json": "["}
ROW = {
    "jsonl": '{{"id": "q-{0}", "question": "What is {0}?", "score": {1}}}\n',
    "csv": 'q-{0},"What is\n{0}?",{1}\n',
    "json": '{{"id": "q-{0}", "question": "What is {0}?", "score": {1}}},\n',
}
TAIL = {"jsonl": "", "csv": "", "json": "{}]"}

READ = """
import os, re, resource, sys
from mmprompt.datasets.read import open_dataset

def peak():
    if os.path.exists("/proc/self/status"):  # where a process has the other number from the one that started it
        with open("/proc/self/status") as file:
            return int(re.search(r"VmHWM:\\s+(\\d+)", file.read())[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

dataset = open_dataset(sys.argv[1])
for number, row in enumerate(dataset, 1):
    if number == 20_000:
        early = peak()
print(number, peak() - early, len(dataset.notes))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs the resource module")
@pytest.mark.parametrize("format_name", ["jsonl", "csv", "json"])
def test_memory_does_not_grow_with_rows(tmp_path, format_name):
    path = tmp_path / f"many.{format_name}"
    with open(path, "w", encoding="utf-8") as file:
        file.write(HEAD[format_name])
        file.writelines(ROW[format_name].format(n, 0.5 if n % 50 else "NaN") for n in range(ROWS))
        file.write(TAIL[format_name])
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)],
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        check=True,
    )
    rows, growth, notes = map(int, done.stdout.split())
    assert rows >= ROWS
    assert growth < 2_000_000
    assert notes < 20


def test_rows_given_by_a_generator_are_not_kept():
    tracemalloc.start()
    try:
        for _ in rows_dataset({"id": n, "text": "x" * 100} for n in range(20_000)):
            pass
        assert tracemalloc.get_traced_memory()[1] < 500_000
    finally:
        tracemalloc.stop()


def test_very_many_blank_lines_take_little_more_than_their_bytes(tmp_path):
    blanks = b" \t\n" * 40_000
    (tmp_path / "blank.jsonl").write_bytes(blanks + b'{"id": 1, "question": "q"}\n')
    tracemalloc.start()
    try:
        dataset = open_dataset(tmp_path / "blank.jsonl")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 * len(blanks)
    assert (dataset.format, [row.id for row in dataset]) == ("jsonl", [1])
