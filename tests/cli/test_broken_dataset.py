"""A dataset with a fault in nearly every second row: each is told once, with its place and a mend; the rest arrives."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from closing_line import closing

NAME = "broken.jsonl"
FAULTS = json.loads((Path(__file__).parents[2] / "fixtures/broken/faults.json").read_text(encoding="utf-8"))
MESSAGE = re.compile(
    r"(?P<file>[^ ]+?):(?P<line>\d+): (?P<code>MM\d{3}) (?P<what>[^;]+?)(?:; (?P<hint>.+?))?"
    r"(?: \((?=[\w@])(?P<column>(?!sample)\w+)?(?: ?@(?P<offset>\d+))?(?:(?:, )?sample (?P<id>[^)]*))?\))?"
)
CODES = {
    "invalid JSON": "MM002", "array instead of object": "MM007", "lone surrogate": "MM012",
    "start tag inside an open segment": "MM101", "stray terminator": "MM100", "injected image tag": "MM206",
    "blank image value": "MM106", "missing file": "MM201", "absolute path": "MM206", "path leaves the root": "MM206",
    "path leaves the root, to a real picture": "MM206", "process file": "MM206", "text file named .jpg": "MM205",
    "empty file": "MM202", "Git LFS pointer": "MM203", "HTML error page": "MM205", "data URI without base64": "MM205",
    "data URI with characters outside base64": "MM208", "unterminated base64": "MM208", "NUL in a path": "MM212",
    "Windows drive path": "MM212", "UNC path": "MM212", "ftp scheme": "MM800",
    "file URL whose host part is a folder that does not exist": "MM201",
    "URL with a backslash and user information": "MM217", "URL with a control character": "MM217",
    "URL with credentials": "MM217", "null content": "MM604", "no content": "MM700", "SVG": "MM214",
    "audio tag with a picture": "MM213", "directory": "MM215", "playlist named .mp4": "MM214",
}  # fmt: skip


class Told(NamedTuple):
    file: str
    line: int
    code: str
    column: str | None
    offset: int | None
    id: str | None
    what: str
    hint: str | None


def told(stderr: bytes) -> list[Told]:
    """Take the messages apart; the last line is the summary."""
    messages = []
    for line in stderr.decode("utf-8").splitlines():
        if line.startswith(("mmprompt: ", "note: ")):
            continue
        match = MESSAGE.fullmatch(line)
        assert match, line
        file, number, code, what, hint, column, offset, id_ = match.groups()
        messages.append(Told(file, int(number), code, column, None if offset is None else int(offset), id_, what, hint))
    return messages


class Run(NamedTuple):
    code: int
    stdout: bytes
    stderr: bytes


@pytest.fixture(scope="module")
def run(command: Any, broken: Path) -> Run:
    done = command("render", NAME, cwd=broken)
    return Run(done.returncode, done.stdout, done.stderr)


def test_failed_rows_give_exit_code_1_and_no_traceback(run: Run) -> None:
    assert run.code == 1
    assert b"Traceback" not in run.stderr
    end = closing(run.stderr.decode())
    assert (end.written, end.left_out, end.repeated, end.notes) == (16, 33, 1, 7)
    assert (end.output, end.size) == ("standard output", len(run.stdout))


@pytest.mark.parametrize("fault", FAULTS["faults"], ids=lambda f: f["fault"])
def test_a_fault_is_told_once_with_its_place_and_a_mend(run: Run, fault: dict[str, Any]) -> None:
    (message,) = [m for m in told(run.stderr) if m.line == fault["line"]]
    assert (message.file, message.code) == (NAME, CODES[fault["fault"]])
    assert message.id == fault["id"] or fault["fault"] == "lone surrogate"  # that row was never read as a sample
    assert message.column == fault["column"]
    assert message.hint


def test_the_place_in_the_column_is_where_the_source_stands(run: Run, broken: Path) -> None:
    rows = (broken / NAME).read_text(encoding="utf-8").splitlines()
    offsets = {m.line: m.offset for m in told(run.stderr) if m.column == "content" and m.offset is not None}
    content = json.loads(rows[8])["content"]
    assert content[offsets[9] :].startswith("/etc/passwd")
    assert json.loads(rows[6])["content"][offsets[7] :].startswith("<AIS_TEXT_START>")
    assert json.loads(rows[31])["content"][offsets[32] :].startswith("ftp://")


def test_sound_rows_all_arrive_in_order_and_nothing_else(run: Run) -> None:
    records = [json.loads(line) for line in run.stdout.splitlines()]
    assert [r["id"] for r in records] == FAULTS["good"]
    assert all(set(r) <= {"id", "messages", "answer"} for r in records)


def test_what_is_accepted_is_right(run: Run) -> None:
    records = {r["id"]: r for r in map(json.loads, run.stdout.splitlines())}
    assert records["b-25"]["messages"][0]["content"][0]["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
    assert "\n" not in records["b-27"]["messages"][0]["content"][0]["image_url"]["url"]
    assert records["b-46"]["answer"] == "4"
    assert records["b-47"]["messages"] == [
        {"role": "user", "content": "<AIS_IMG_START>media/cup.jpg<AIS_TEXT_END> What does a tag look like?"}
    ]


@pytest.mark.parametrize(("line", "column", "words"), [
    (1, None, "byte order mark"), (44, "id", "line 1"), (45, "serial", "64 bits"), (46, "score", "NaN"),
])  # fmt: skip
def test_what_is_accepted_is_reported_once(run: Run, line: int, column: str | None, words: str) -> None:
    plain = [
        n.removeprefix(b"note: ") for n in run.stderr.splitlines() if b"(sample b-2" not in n and b" rows: " not in n
    ]
    (message,) = [m for m in told(b"\n".join(plain)) if m.line == line]
    assert words in message.what
    assert message.column == column


def test_messages_hold_no_payload_secret_or_path_of_this_machine(run: Run, broken: Path) -> None:
    text = run.stderr.decode("utf-8")
    assert str(broken) not in text
    assert "password@" not in text
    assert "user:" not in text
    assert max(len(line) for line in text.splitlines()) < 400
    assert not re.search(r"[A-Za-z0-9+/]{81}", text)


def test_several_workers_tell_and_write_the_same(run: Run, command: Any, broken: Path) -> None:
    done = command("render", NAME, "--workers", 4, cwd=broken)
    assert (done.returncode, done.stdout, done.stderr) == (run.code, run.stdout, run.stderr)


@pytest.mark.parametrize("workers", [1, 4])
def test_strict_stops_at_the_first_fault_and_leaves_nothing(
    command: Any, broken: Path, tmp_path: Path, workers: int
) -> None:
    out = tmp_path / "out.jsonl"
    done = command("render", NAME, "--strict", "-o", out, "--workers", workers, cwd=broken)
    assert (done.returncode, done.stdout) == (1, b"")
    (message,) = told(done.stderr)
    assert message.line == 2
    assert os.listdir(tmp_path) == []


def test_strict_keeps_the_old_output(command: Any, broken: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_bytes(b"old\n")
    assert command("render", NAME, "--strict", "-o", out, cwd=broken).returncode == 1
    assert out.read_bytes() == b"old\n"
    assert os.listdir(tmp_path) == ["out.jsonl"]


def test_strict_is_content_with_sound_rows(command: Any, tour: Path) -> None:
    done = command("render", tour / "tour.jsonl", "--strict")
    assert (done.returncode, closing(done.stderr.decode()).left_out, done.stdout.count(b"\n")) == (0, 0, 25)


def test_what_was_accepted_all_the_same_is_noted(run: Run) -> None:
    notes = [line.removeprefix("note: ") for line in run.stderr.decode().splitlines() if line.startswith("note: ")]
    places = [f"{NAME}:{n}: {code}" for n, code in
              [(25, "MM204"), (27, "MM219"), (1, "MM004"), (45, "MM021"), (46, "MM018")]]  # fmt: skip
    assert [" ".join(n.split(" ")[:2]) for n in notes[:5]] == places
    assert notes[5].startswith("MM102 1 of 46 rows: a text segment of 'content' holds a misspelt tag")
    assert notes[6].startswith("MM616 1 of 46 rows: 'serial' is not sent")
    assert notes[0].endswith("declared image/jpeg, bytes are PNG (sample b-25)")
