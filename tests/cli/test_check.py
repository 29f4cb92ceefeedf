"""``mmprompt check``: what it writes, where, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mmprompt.cli import main
from mmprompt.errors.rules import RULES

ROWS = """\
{"id": "a", "question": "What is this?", "image": "nowhere.jpg", "answer": "x"}
{broken
{"id": "c", "question": "Why?", "answer": null}
"""
GOOD = '{"id": "a", "question": "What is this?", "answer": "a cat"}\n'


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    path.write_text(ROWS)
    return path


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.jsonl"
    path.write_text(GOOD)
    return path


def check(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Run the command; return its exit code and what it wrote."""
    code = main(["check", *map(str, arguments)])
    written = capsys.readouterr()
    return code, written.out, written.err


def codes(text: str) -> list[str]:
    return [word for line in text.splitlines() for word in line.split()[:2] if word in RULES]


def test_findings_go_out_as_lines_in_the_order_of_rows(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = check(capsys, data, "--ignore", "MM6")
    assert (code, codes(out)) == (1, ["MM201", "MM002", "MM701"])
    assert out.splitlines()[1].startswith(f"{data}:2: MM002 invalid JSON")
    assert err == "mmprompt: 3 rows checked: 2 errors, 1 warning\n"


def test_good_rows_pass(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, good) == (0, "All checks passed!\n", "mmprompt: 1 row checked: no finding\n")


def test_json_is_one_object_with_findings_and_summary(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = check(capsys, data, "--output-format", "json", "--ignore", "MM6")
    told = json.loads(out)
    first = told["findings"][0]
    assert code == 1
    assert (first["code"], first["severity"], first["line"], first["row"], first["id"], first["column"]) == (
        ("MM201", "error", 1, 0, "a", "image")
    )
    assert set(first) == {
        *("code", "severity", "message", "hint", "file", "line", "row", "id", "column", "offset", "part"),
        *("fixable", "url", "medium"),
    }
    counts = {"rows": 3, "errors": 2, "warnings": 1, "infos": 0, "fixable": 0}
    assert told["summary"] == {**counts, "codes": {"MM002": 1, "MM201": 1, "MM701": 1}}


def test_jsonl_is_a_finding_a_line(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = check(capsys, data, "--output-format", "jsonl", "--ignore", "MM6")
    assert [json.loads(line)["code"] for line in out.splitlines()] == ["MM201", "MM002", "MM701"]


def test_a_file_gets_the_report_in_place_of_standard_output(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = check(capsys, data, "--output-file", tmp_path / "report.txt", "--ignore", "MM6")
    assert (code, out) == (1, "")
    assert codes((tmp_path / "report.txt").read_text()) == ["MM201", "MM002", "MM701"]


def test_selected_codes_alone_are_told_and_decide_the_exit_code(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert codes(check(capsys, data, "--select", "MM2,MM7")[1]) == ["MM201", "MM701"]
    assert codes(check(capsys, data, "--select", "MM2", "--extend-select", "MM0")[1]) == ["MM201", "MM002"]
    assert check(capsys, data, "--select", "MM4")[:2] == (0, "All checks passed!\n")


def test_an_unknown_code_is_wrong_usage(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = check(capsys, data, "--select", "MX2")
    assert (code, out, err) == (2, "", "mmprompt: MM602 unknown code 'MX2'; did you mean 'MM2'?\n")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["nowhere.jsonl"], "no such file"),
        ([], "name a dataset"),
        (["{good}", "--output-format", "jsn"], "did you mean 'json'?"),
        (["{good}", "--target", "opnai"], "did you mean 'openai'?"),
        (["{good}", "--output-file", "{good}"], "is also an input"),
        (["{good}", "--statistics", "--output-format", "json"], "--statistics"),
    ],
)
def test_wrong_usage_is_exit_2(
    good: Path, arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = check(capsys, *[argument.format(good=good) for argument in arguments])
    assert (code, out) == (2, "")
    assert named in err


def test_exit_zero_leaves_the_findings(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = check(capsys, data, "--exit-zero", "--select", "MM0")
    assert (code, codes(out)) == (0, ["MM002"])


def test_statistics_count_by_code(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data.write_text(ROWS + "{broken again\n")
    code, out, _ = check(capsys, data, "--statistics", "--select", "MM0,MM2")
    assert code == 1
    assert out == "2  MM002  [ ]  malformed-json\n1  MM201  [ ]  missing-file\n"


def test_a_file_that_is_no_dataset_is_a_finding_and_the_others_are_checked(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "binary.jsonl").write_bytes(b"GIF89a\x00\x01")
    code, out, _ = check(capsys, tmp_path / "binary.jsonl", data, "--select", "MM0")
    assert (code, codes(out)) == (1, ["MM000", "MM002"])


def test_a_wrong_task_file_is_a_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = tmp_path / "task.yaml"
    task.write_text("dataset: {path: x.jsonl}\ninfer_cg: {}\n")
    code, out, _ = check(capsys, task)
    assert (code, codes(out)) == (1, ["MM602"])
    assert "infer_cfg" in out


def test_datasets_of_one_folder_and_format_are_one_dataset(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "again.jsonl").write_text(GOOD.replace('"a"', '"b"'))
    (tmp_path / "other.csv").write_text("id,question,answer\na,What is this?,a cat\n")
    code, out, err = check(capsys, good, tmp_path / "again.jsonl", tmp_path / "other.csv", "--select", "MM707")
    assert (code, codes(out)) == (1, ["MM707"])
    assert "again.jsonl:1:" in out
    assert "3 rows checked" in err


def test_a_limit_bounds_the_rows(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, err = check(capsys, data, "--limit", "1", "--select", "MM0,MM2,MM7")
    assert codes(out) == ["MM201"]
    assert "1 row checked" in err


@pytest.mark.parametrize("code", RULES)
def test_each_code_can_be_explained(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = check(capsys, "--explain", code)
    assert status == 0
    assert out.startswith(f"# {code} {RULES[code].name}\n")
    assert [word for word in ("What:", "Why:", "Example:", "Mend:") if word not in out] == []
    assert f"Severity: {RULES[code].severity}" in out


def test_a_code_to_explain_may_be_in_lower_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, "--explain", "mm204") == check(capsys, "--explain", "MM204")


def test_a_code_to_explain_must_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, "--explain", "MM2044")[::2] == (
        2,
        "mmprompt: MM602 unknown code 'MM2044'; did you mean 'MM204'?\n",
    )
