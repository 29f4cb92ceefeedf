"""``check_dataset`` in Python, the assertion for tests, and datasets whose rows are tests of pytest."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from pytest_command import pytest_here

from mmprompt import check_dataset, load_task, testing
from mmprompt.errors import TargetError, TaskError

ROWS = [
    {"id": "a", "question": "What is this?", "image": "nowhere.jpg", "answer": "x"},
    {"id": "b", "question": "Why?", "answer": None},
    {"id": "c", "question": "Where?", "answer": "here"},
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS[:2]) + "{broken\n" + json.dumps(ROWS[2]) + "\n")
    return path


CHOSEN = ["MM002", "MM201", "MM701"]


def test_rows_in_place_of_names_are_refused_with_what_to_give() -> None:
    with pytest.raises(TaskError, match="the name of a file is dict; give load_task"):
        list(check_dataset([{"question": "What?"}]))  # type: ignore[list-item]  # what a user would try


def test_files_may_be_named_one_after_the_other(data: Path) -> None:
    named = list(check_dataset(data.parent.glob(data.name)))
    assert named == list(check_dataset([data]))
    assert len(named) > 1


def test_findings_are_yielded_in_the_order_of_rows(data: Path) -> None:
    found = [(f.code, f.row, f.id) for f in check_dataset(data, select=CHOSEN)]
    assert sorted(found, key=str) == [("MM002", 2, None), ("MM201", 0, "a"), ("MM701", 1, "b")]
    assert [f.code for f in check_dataset(data, select="MM2")] == ["MM201"]
    assert [f.code for f in check_dataset(data, select="MM", ignore=["MM0", "MM2", "MM6", "MM7"])] == []
    assert [f.code for f in check_dataset(data, select="MM201", limit=1, workers=2, decode=False)] == ["MM201"]


def test_the_first_finding_comes_before_the_last_row_is_read() -> None:
    taken = []

    def rows():
        for number in range(10_000):
            taken.append(number)
            yield {"id": number, "question": f"Why {number}?", "image": "nowhere.jpg", "answer": "x"}

    found = list(islice(check_dataset({"dataset": {"rows": rows()}}, select="MM2"), 2))
    assert [f.row for f in found] == [0, 1]
    assert len(taken) < 10


def test_a_task_as_a_mapping_and_another_dataset_are_taken(data: Path, tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(json.dumps({**ROWS[2], "id": 9}) + "\n")
    task = {"dataset": {"path": str(data)}}
    found = list(check_dataset(task, select="MM711", against=tmp_path / "train.jsonl"))
    assert [(f.code, f.row) for f in found] == [("MM711", 3)]


def test_a_file_that_is_no_dataset_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"GIF89a\0\1")
    found = list(check_dataset(tmp_path / "data.bin"))
    assert [(f.code, f.file) for f in found] == [("MM000", str(tmp_path / "data.bin"))]
    assert list(check_dataset(tmp_path / "data.bin", ignore="MM0")) == []


def test_wrong_arguments_are_errors(data: Path) -> None:
    with pytest.raises(TaskError, match="unknown code 'MX'"):
        list(check_dataset(data, select="MX"))
    with pytest.raises(TargetError, match="unknown target 'opnai'"):
        list(check_dataset(data, target="opnai"))


# ---- the assertion


def test_the_assertion_lists_the_findings(data: Path) -> None:
    with pytest.raises(AssertionError) as caught:
        testing.check_dataset(data, select=CHOSEN)
    lines = str(caught.value).splitlines()
    assert lines[0] == "3 findings"
    assert {re.search(r"MM\d{3}", line)[0] for line in lines[1:]} == set(CHOSEN)  # type: ignore[index]
    testing.check_dataset(data, select="MM4")


def test_the_assertion_counts_what_it_does_not_list(tmp_path: Path) -> None:
    row = json.dumps({"id": 0, "question": "Why?", "image": "nowhere.jpg", "answer": "x"}) + "\n"
    (tmp_path / "data.jsonl").write_text(row * 33)
    with pytest.raises(AssertionError) as caught:
        testing.check_dataset(tmp_path / "data.jsonl", select="MM201")
    lines = str(caught.value).splitlines()
    assert (lines[0], len(lines), lines[-1]) == ("33 findings", 22, "… and 13 more")


# ---- rows as tests of pytest


def run(folder: Path, *options: str) -> tuple[int, str]:
    done = pytest_here(folder, *options, COLUMNS="300")
    return done.returncode, done.stdout


def test_each_row_of_a_named_dataset_is_a_test(data: Path) -> None:
    settings = (
        '[tool.pytest.ini_options]\nmmprompt_check_files = ["*.jsonl"]\n[tool.mmprompt]\nignore = ["MM6", "MM715"]\n'
    )
    (data.parent / "pyproject.toml").write_text(settings)
    code, out = run(data.parent, "-rA")
    told = dict(re.findall(r"^(PASSED|FAILED) (data\.jsonl::[^-\n]*?)(?: - .*)?$", out, re.MULTILINE))
    by_name = {
        name: outcome
        for outcome, name in re.findall(r"^(PASSED|FAILED) data\.jsonl::(.*?)(?: - .*)?$", out, re.MULTILINE)
    }
    assert code == 1
    assert by_name == {"a": "FAILED", "b": "FAILED", "line 3": "FAILED", "c": "PASSED", "dataset": "PASSED"}, out
    assert "data.jsonl:1: MM201 no such file: 'nowhere.jpg'" in out
    assert "Traceback" not in out
    assert told


def test_one_row_can_be_chosen(data: Path) -> None:
    (data.parent / "pytest.ini").write_text("[pytest]\nmmprompt_check_files = *.jsonl\n")
    code, out = run(data.parent, "data.jsonl::c", "data.jsonl::a")
    assert code == 1
    assert "1 failed, 1 passed" in out


def test_nothing_is_collected_unasked(data: Path) -> None:
    code, out = run(data.parent)
    assert code == 5
    assert "no tests ran" in out


def test_a_file_that_is_no_dataset_is_a_failed_test(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmmprompt_check_files = *.jsonl\n")
    (tmp_path / "data.jsonl").write_bytes(b"GIF89a\0\1")
    code, out = run(tmp_path)
    assert code == 1
    assert "MM000" in out


def test_the_findings_of_a_row_that_came_late_wait_for_no_other_row() -> None:
    asked = 0

    def late_rows() -> Iterator[dict[str, Any]]:
        nonlocal asked
        for number in range(6):
            asked += 1
            time.sleep(0.07)
            yield {"id": number, "question": "<image>\nWhat is this?", "answer": "a"}

    found = [(finding.row, asked) for finding in check_dataset(load_task({}, {"rows": late_rows()}), select=["MM107"])]
    assert found == [(number, number + 1) for number in range(6)]


def test_a_file_renamed_between_two_checks_is_named_as_it_is_now(tmp_path: Path) -> None:
    data, picture = tmp_path / "data.jsonl", tmp_path / "Cat.png"
    picture.write_bytes(Path("fixtures/shapes/media/shapes-02.png").read_bytes())
    data.write_text('{"question": "q", "image": "cat.png", "answer": "a"}\n')
    hints = []
    for name in ("Cat.png", "CAT.png"):
        picture = picture.rename(tmp_path / name)
        hints += [finding.hint for finding in check_dataset(data, select="MM207")]
    assert hints == ["write Cat.png", "write CAT.png"]
