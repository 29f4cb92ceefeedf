"""The reports of ``mmprompt check`` that other tools read, each read by such a tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from junitparser import JUnitXml

from mmprompt.cli import main

SCHEMA = Path(__file__).parent.parent / "check" / "schemas" / "sarif-schema-2.1.0.json"
ROWS = [
    {"id": "a,b:c%\n", "question": "What is this?", "image": "no, where: 100%.jpg", "answer": "x"},
    {"id": "\u0007<b>&\"'", "question": "Why?", "answer": None},
    {"id": "good", "question": "Where?", "answer": "here"},
]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("my data.jsonl")
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS) + "{broken\n")
    return path


def report(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Return the report of a check that finds something."""
    assert main(["check", *map(str, arguments), "--ignore", "MM013,MM6,MM715,MM019"]) == 1
    return capsys.readouterr().out


def test_sarif_follows_its_published_schema(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = json.loads(report(capsys, data, "--output-format", "sarif"))
    jsonschema.Draft4Validator(json.loads(SCHEMA.read_text())).validate(log)
    run = log["runs"][0]
    told = [(r["ruleId"], r["level"], place(r)) for r in run["results"]]
    assert told == [
        ("MM201", "error", ("my%20data.jsonl", 1)),
        ("MM701", "warning", ("my%20data.jsonl", 2)),
        ("MM002", "error", ("my%20data.jsonl", 4)),
    ]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["MM002", "MM201", "MM701"]


def place(result: Any) -> tuple[str, int]:
    physical = result["locations"][0]["physicalLocation"]
    return physical["artifactLocation"]["uri"], physical["region"]["startLine"]


def test_sarif_of_good_rows_follows_the_schema_too(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data.write_text(json.dumps(ROWS[2]) + "\n")
    assert main(["check", str(data), "--output-format", "sarif"]) == 0
    log = json.loads(capsys.readouterr().out)
    jsonschema.Draft4Validator(json.loads(SCHEMA.read_text())).validate(log)
    assert log["runs"][0]["results"] == []


def test_a_sarif_fingerprint_outlives_new_rows_above(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = json.loads(report(capsys, data, "--output-format", "sarif", "--select", "MM201"))
    data.write_text(json.dumps(ROWS[2]) + "\n" + data.read_text())
    after = json.loads(report(capsys, data, "--output-format", "sarif", "--select", "MM201"))
    assert [place(log["runs"][0]["results"][0])[1] for log in (before, after)] == [1, 2]
    keys = [log["runs"][0]["results"][0]["partialFingerprints"] for log in (before, after)]
    assert keys[0] == keys[1]


def test_junit_has_a_suite_for_each_dataset_and_a_failure_for_each_finding(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("good.csv").write_text("id,question,answer\nq,Why?,so\n")
    Path("report.xml").write_text(report(capsys, data, "good.csv", "--output-format", "junit"), encoding="utf-8")
    suites = {suite.name: suite for suite in JUnitXml.fromfile("report.xml")}
    bad, good = suites["my data.jsonl"], suites["good.csv"]
    assert (bad.tests, bad.failures, bad.errors) == (3, 3, 0)
    assert [case.name for case in bad] == [
        "MM201 missing-file my data.jsonl:1",
        "MM701 missing-answer my data.jsonl:2",
        "MM002 malformed-json my data.jsonl:4",
    ]
    assert "no, where: 100%.jpg" in next(iter(bad)).result[0].text
    assert (good.tests, good.failures, [case.is_passed for case in good]) == (1, 0, [True])


def test_annotations_of_github_are_escaped(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = report(capsys, data, "--output-format", "github").splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["::error", "::warning", "::error"]
    assert lines[0].startswith("::error file=my data.jsonl,line=1,title=mmprompt MM201::no such file")
    assert "no, where: 100%25.jpg" in lines[0]
    assert "(sample a,b:c%25%0A)" in lines[0]


@pytest.mark.parametrize("kind", ["text", "github", "html", "junit", "json", "jsonl", "sarif"])
def test_no_report_has_control_characters(kind: str, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"id": "\x1b[31mred\x9b\u2028", "question": "Why?", "image": "\x1b]0;no.jpg", "answer": "\x1b[2J"}
    data.write_text(json.dumps(row) + "\n")
    told = report(capsys, data, "--output-format", kind)
    assert "red" in told
    assert [c for c in told if ord(c) < 32 and c != "\n"] == []
    if kind in ("text", "github", "html"):
        assert [c for c in told if not c.isprintable() and c != "\n"] == []


def test_a_file_name_is_escaped_in_an_annotation(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data.rename("a,b:c%.jsonl")
    lines = report(capsys, "a,b:c%.jsonl", "--output-format", "github").splitlines()
    assert lines[0].startswith("::error file=a%2Cb%3Ac%25.jsonl,line=1,")


def test_a_report_in_a_file_is_sorted_by_row_and_leaves_no_state(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data.write_text(data.read_text() + json.dumps({**ROWS[2], "id": "again"}) + "\n" + json.dumps(ROWS[1]) + "\n")
    report(capsys, data, "--output-format", "jsonl", "--output-file", "out.jsonl")
    rows = [json.loads(line)["row"] for line in Path("out.jsonl").read_text().splitlines()]
    assert rows == sorted(rows)
    assert sorted(path.name for path in Path().iterdir()) == ["my data.jsonl", "out.jsonl"]


def test_the_text_report_folds_findings_that_are_alike_and_the_data_do_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": n, "question": "What?", "image": "gone.png", "answer": "A"} for n in range(9)]
    rows[0]["image"] = None
    Path("vqa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    told = report(capsys, "vqa.jsonl", "--select", "MM201").splitlines()
    assert [line.partition(": ")[0] for line in told[:4]] == [*[f"vqa.jsonl:{n}" for n in (2, 3, 4)], "vqa.jsonl"]
    assert told[3].startswith("vqa.jsonl: … and 5 more: MM201 no such file: 'gone.png'; ")
    assert told[4:] == ["… --output-format jsonl tells each of them"]
    assert len(report(capsys, "vqa.jsonl", "--select", "MM201", "--output-format", "jsonl").splitlines()) == 8
    Path("vqa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:4]), encoding="utf-8")
    assert len(report(capsys, "vqa.jsonl", "--select", "MM201").splitlines()) == 3


@pytest.mark.parametrize("more", [(), ("--engine", "local", "--rows-per-shard", "5")])
def test_rows_that_all_miss_their_files_are_folded_and_the_folder_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": n, "question": "What?", "images": [f"{n}.png", f"{n}b.png"], "answer": "A"} for n in range(8)]
    for name in ("vqa.jsonl", "other/vqa.jsonl"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    Path("wrong").mkdir()
    asked = ("vqa.jsonl", "other/vqa.jsonl", "--select", "MM201", "--media-root", "wrong", *more)
    told = report(capsys, *asked).splitlines()
    assert [line.partition(": ")[0] for line in told[:4]] == [f"vqa.jsonl:{n}" for n in (1, 1, 2)] + ["vqa.jsonl"]
    for line, root in ((told[3], "."), (told[7], "other")):
        where = f"relative paths begin at '{root}', 'wrong'"
        assert line.endswith(f": … each of the first 4 rows misses a file; {where}: check --media-root DIR")
    assert [line.partition("; ")[0] for line in told[8:]] == [
        "vqa.jsonl: … and 13 more: MM201 no such file: …",
        "other/vqa.jsonl: … and 13 more: MM201 no such file: …",
        "… --output-format jsonl tells each of them",
    ]
    assert len(report(capsys, *asked, "--output-format", "jsonl").splitlines()) == 32
