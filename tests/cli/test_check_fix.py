"""``mmprompt check --fix``: what it mends, that all other bytes stay, and what it refuses."""

from __future__ import annotations

import base64
import csv
import io
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from mmprompt.cli import main

OPEN = "<AIS_TEXT_START>What is this?"
CLOSED = "<AIS_TEXT_START>What is this?<AIS_CONTENT_TAG>"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def picture(kind: str = "PNG", seed: int = 3) -> bytes:
    buffer = io.BytesIO()
    Image.linear_gradient("L").rotate(seed * 11).resize((64, 64)).convert("RGB").save(buffer, kind)
    return buffer.getvalue()


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["check", *arguments])
    written = capsys.readouterr()
    return code, written.out, written.err


def test_a_mended_line_is_the_only_one_that_changes(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        b'{ "id":1 ,"content" : "<AIS_TEXT_START>Caf\\u00e9?<AIS_CONTENT_TAG>","answer":"x", "score": 1.50 }\r\n',
        b'{"id": 2, "x": {"content": 1}, "content": "' + OPEN.encode() + b'" , "answer":  "y", "score": 1e2}\n',
        b"\n",
        '{"id": 3, "content": "<AIS_TEXT_START>Où?", "answer": "z", "score": 2}'.encode(),
    ]
    Path("data.jsonl").write_bytes(b"".join(lines))
    code, out, err = check(capsys, "data.jsonl", "--fix", "--select", "MM104")
    assert (code, out) == (0, "All checks passed!\n")
    assert "2 findings mended in data.fixed.jsonl" in err
    mended = Path("data.fixed.jsonl").read_bytes().splitlines(keepends=True)
    assert mended[0] == lines[0]
    assert mended[1] == lines[1].replace(OPEN.encode(), CLOSED.encode())
    assert mended[2] == lines[2]
    assert mended[3] == lines[3].replace("Où?".encode(), "Où?<AIS_CONTENT_TAG>".encode())
    assert Path("data.jsonl").read_bytes() == b"".join(lines)
    assert check(capsys, "data.fixed.jsonl", "--select", "MM104")[0] == 0


def test_a_byte_order_mark_is_removed(capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (
        ("a.jsonl", '{"id": 1, "question": "Why?", "answer": "x"}\n'),
        ("b.csv", "id,question\n1,Why?\n"),
    ):
        Path(name).write_text("\ufeff" + text, encoding="utf-8")
        code, out, _ = check(capsys, name, "--select", "MM004")
        assert code == 1
        assert "MM004 [*]" in out
        assert check(capsys, name, "--fix", "-o", "out" + name, "--select", "MM004")[0] == 0
        assert Path("out" + name).read_text(encoding="utf-8") == text


def test_the_byte_order_marks_of_two_files_are_removed(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        row = {"id": name, "question": f"Why {name}?", "answer": "x"}
        Path(name).write_text("\ufeff" + json.dumps(row) + "\n", encoding="utf-8")
    code, out, err = check(capsys, "a.jsonl", "b.jsonl", "--fix", "--select", "MM004")
    assert (code, out) == (0, "All checks passed!\n")
    assert err.count("1 finding mended in") == 2
    for name in ("a", "b"):
        assert Path(f"{name}.fixed.jsonl").read_bytes() == Path(f"{name}.jsonl").read_bytes()[3:]


@pytest.mark.parametrize("kind", ["file", "link", "link to nothing"])
def test_a_file_that_is_there_is_not_overwritten_unless_named(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("data.jsonl").write_text(json.dumps({"id": 1, "content": OPEN, "answer": "x"}) + "\n")
    target = Path("data.fixed.jsonl")
    if kind != "link to nothing":
        Path("mine.jsonl").write_text("mine")
    if kind == "file":
        Path("mine.jsonl").rename(target)
    else:
        target.symlink_to("mine.jsonl")
    before = sorted((path.name, path.is_symlink()) for path in Path().iterdir())
    code, out, err = check(capsys, "data.jsonl", "--fix", "--select", "MM104")
    assert (code, out) == (2, "")
    assert "'data.fixed.jsonl' is there already; remove it, or name another file: -o FILE" in err
    assert kind == "link to nothing" or target.read_text() == "mine"
    assert sorted((path.name, path.is_symlink()) for path in Path().iterdir()) == before
    assert check(capsys, "data.jsonl", "--diff", "--select", "MM104")[0] == 1
    assert check(capsys, "data.jsonl", "--fix", "-o", "data.fixed.jsonl", "--select", "MM104")[0] == 0
    assert CLOSED in target.read_text()


@pytest.mark.parametrize(
    "options",
    [
        ["--output-file", "data.fixed.jsonl"],
        ["--output-file", "out.jsonl", "-o", "out.jsonl"],
        ["--baseline", "data.fixed.jsonl", "--write-baseline"],
        ["--baseline", "out.jsonl", "--write-baseline", "-o", "out.jsonl"],
    ],
)
def test_report_and_mended_file_lie_apart(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("data.jsonl").write_text(json.dumps({"id": 1, "content": OPEN, "answer": "x"}) + "\n")
    code, _, err = check(capsys, "data.jsonl", "--fix", *options)
    assert code == 2
    assert "is also an input or output" in err
    assert [path.name for path in Path().iterdir()] == ["data.jsonl"]


CUT = ["<AIS_CONTENT_TAG", "<AIS_CONTENT", "<AIS", "<ais_content_tag>", "</AIS_CONTENT_TAG>", "<AIS_CONTENT_TAG >", "<"]


@pytest.mark.parametrize("end", CUT)
def test_a_cut_terminator_is_not_mended(end: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("data.jsonl").write_text(json.dumps({"id": 1, "content": OPEN + end, "answer": "x"}) + "\n")
    code, out, err = check(capsys, "data.jsonl", "--fix", "--select", "MM104")
    assert code == 1
    assert "MM104 the last segment is not closed" in out
    assert "nothing to mend" in err
    assert not Path("data.fixed.jsonl").exists()


def odd_rows() -> list[dict[str, object]]:
    """Return rows whose base64 is odd, or whose data URI declares another type."""
    plain = base64.b64encode(picture()).decode()
    url_safe = base64.urlsafe_b64encode(picture("PNG", 5)).decode()
    assert url_safe != base64.b64encode(picture("PNG", 5)).decode()
    broken = "\n".join(plain[at : at + 76] for at in range(0, len(plain), 76))
    return [
        {"id": 1, "question": "Why?", "image": f"data:image/jpeg;base64,{plain}", "answer": "x"},
        {"id": 2, "question": "Who?", "image": url_safe, "answer": "x"},
        {"id": 3, "question": "How?", "image": f"data:image/jpeg;base64,{broken}", "answer": "x"},
        {"id": 4, "question": "So?", "image": f"data:image/png;base64,{plain}", "answer": "x"},
    ]


SENT = [f"data:image/png;base64,{base64.b64encode(picture()).decode()}", base64.b64encode(picture("PNG", 5)).decode()]


def test_odd_base64_and_wrong_types_become_plain(capsys: pytest.CaptureFixture[str]) -> None:
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in odd_rows()))
    code, out, _ = check(capsys, "data.jsonl", "--select", "MM204,MM219")
    assert code == 1
    assert out.count("[*]") == out.count("\n") == 4
    assert check(capsys, "data.jsonl", "--fix", "--select", "MM204,MM219")[:2] == (0, "All checks passed!\n")
    mended = [json.loads(line) for line in Path("data.fixed.jsonl").read_text().splitlines()]
    assert [row["image"] for row in mended] == [SENT[0], SENT[1], SENT[0], SENT[0]]


@pytest.mark.parametrize(
    ("name", "mark", "start"),
    [
        ("data.csv", ",", ""), ("data.tsv", "\t", ""), ("data.csv", ";", ""), ("data.csv", "\t", ""),
        ("data.csv", "|", "sep=|\r\n"),
    ],
)  # fmt: skip
def test_cells_are_mended_in_place(name: str, mark: str, start: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = odd_rows()
    held = io.StringIO()
    writer = csv.writer(held, delimiter=mark, lineterminator="\r\n")
    writer.writerow(rows[0])
    writer.writerow(["0", 'a "b"\nc, d', "", "x"])
    writer.writerows(row.values() for row in rows)
    text = start + held.getvalue()
    Path(name).write_bytes(text.encode())
    assert check(capsys, name, "--fix", "--select", "MM204,MM219")[0] == 0
    mended = Path(name.replace(".", ".fixed.")).read_bytes().decode()
    expected = text.replace("data:image/jpeg", "data:image/png").replace(str(rows[1]["image"]), SENT[1])
    third = str(rows[2]["image"]).replace("data:image/jpeg", "data:image/png")
    assert mended == expected.replace(f'"{third}"', f'"{SENT[0]}"')


def test_two_media_of_one_text_are_both_mended(capsys: pytest.CaptureFixture[str]) -> None:
    one, two = (base64.b64encode(picture("PNG", seed)).decode() for seed in (1, 2))
    tag = "<AIS_IMAGE_START>data:image/jpeg;base64,{}<AIS_CONTENT_TAG>"
    content = tag.format(one) + "<AIS_TEXT_START>Why?<AIS_CONTENT_TAG>" + tag.format(two)
    Path("data.jsonl").write_text(json.dumps({"id": 1, "content": content, "answer": "x"}) + "\n")
    assert check(capsys, "data.jsonl", "--fix", "--select", "MM204")[0] == 0
    mended = json.loads(Path("data.fixed.jsonl").read_text())
    assert mended["content"] == content.replace("jpeg", "png")


def test_names_of_another_case_are_mended_in_lists_and_in_one_text(capsys: pytest.CaptureFixture[str]) -> None:
    tagged = (
        "<AIS_IMAGE_START>{}<AIS_CONTENT_TAG><AIS_IMAGE_START>{}<AIS_CONTENT_TAG><AIS_TEXT_START>Why?<AIS_CONTENT_TAG>"
    )
    rows: list[dict[str, object]] = [
        {"id": 1, "question": "Which?", "images": ["A.PNG", "a.png", "B.png"], "answer": "x"},
        {"id": 2, "content": tagged.format("A.png", "B.PNG"), "answer": "y"},
    ]
    Path("a.png").write_bytes(picture())
    Path("b.png").write_bytes(picture(seed=9))
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert check(capsys, "data.jsonl", "--fix", "--select", "MM2")[0] == 0
    mended = [json.loads(line) for line in Path("data.fixed.jsonl").read_text().splitlines()]
    assert mended == [
        {**rows[0], "images": ["a.png", "a.png", "b.png"]},
        {**rows[1], "content": tagged.format("a.png", "b.png")},
    ]


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs the program patch")
def test_the_difference_can_be_applied_by_patch(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [json.dumps({"id": 0, "content": CLOSED, "answer": "x"})] * 3
    rows += [json.dumps({"id": 1, "content": OPEN, "answer": "x"}), *rows]
    rows.append(json.dumps({"id": 2, "content": OPEN, "answer": "x"}))
    Path("data.jsonl").write_text("\n".join(rows))
    code, out, err = check(capsys, "data.jsonl", "--diff", "--select", "MM104")
    assert (code, err) == (1, "")
    assert not Path("data.fixed.jsonl").exists()
    assert check(capsys, "data.jsonl", "--fix", "--select", "MM104")[0] == 0
    Path("patch").write_text(out)
    subprocess.run(["patch", "-s", "data.jsonl", "patch"], check=True)
    assert Path("data.jsonl").read_bytes() == Path("data.fixed.jsonl").read_bytes()
    assert check(capsys, "data.jsonl", "--diff", "--select", "MM104")[:2] == (0, "")


def test_what_may_change_the_meaning_is_mended_only_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    Path("data.jsonl").write_text(json.dumps({"id": 1, "question": "What is\u0007 this?", "answer": "x"}) + "\n")
    code, out, _ = check(capsys, "data.jsonl", "--fix", "--select", "MM013")
    assert code == 1
    assert "[*]" not in out
    assert not Path("data.fixed.jsonl").exists()
    assert check(capsys, "data.jsonl", "--fix", "--unsafe-fixes", "--select", "MM013")[0] == 0
    assert json.loads(Path("data.fixed.jsonl").read_text())["question"] == "What is this?"


def test_findings_that_stay_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("data.jsonl").write_text(json.dumps({"id": 1, "content": OPEN, "answer": None}) + "\n")
    code, out, err = check(capsys, "data.jsonl", "--fix", "--select", "MM104,MM701")
    assert code == 1
    assert "MM104" not in out
    assert "MM701" in out
    assert "1 row checked: 1 warning" in err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["data.json", "--fix"], "mmprompt convert data.json data.jsonl --to jsonl"),
        (["data.jsonl", "-o", "out.jsonl"], "-o is for --fix"),
        (["data.jsonl", "--unsafe-fixes"], "--unsafe-fixes is for --fix"),
        (["data.jsonl", "--fix", "-o", "data.jsonl"], "is also an input"),
        (["data.jsonl", "other.csv", "--fix", "-o", "out.jsonl"], "-o names one file"),
    ],
)
def test_what_cannot_be_mended_is_refused(arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"id": 1, "content": OPEN, "answer": "x"}
    Path("data.json").write_text(json.dumps([row]))
    Path("data.jsonl").write_text(json.dumps(row) + "\n")
    Path("other.csv").write_text("id,question,answer\n1,Why?,x\n")
    code, out, err = check(capsys, *arguments)
    assert (code, out) == (2, "")
    assert named in err
    assert Path("data.jsonl").read_text() == json.dumps(row) + "\n"


def test_findings_of_other_formats_are_not_marked(capsys: pytest.CaptureFixture[str]) -> None:
    Path("data.json").write_text(json.dumps([{"id": 1, "content": OPEN, "answer": "x"}]))
    code, out, _ = check(capsys, "data.json", "--select", "MM104")
    assert code == 1
    assert "[*]" not in out


def test_the_last_line_says_how_many_findings_unsafe_fixes_mend(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": 1, "question": "A cafÃ©?", "answer": "x"}, {"id": 2, "question": "Why?", "answer": "y "}]
    (folder / "two.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for options, last in (
        (["MM005,MM717"], "1 warning, 1 info, 1 fixable with --fix, 1 more with --unsafe-fixes"),
        (["MM005"], "1 warning, 1 fixable with --fix --unsafe-fixes"),
        (["MM005", "--fix", "--unsafe-fixes"], "no finding"),
    ):
        said = check(capsys, "two.jsonl", "--select", *options)[2]
        assert said.endswith(f"mmprompt: 2 rows checked: {last}\n")
