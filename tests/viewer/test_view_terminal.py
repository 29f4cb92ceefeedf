"""``mmprompt view`` in the terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mmprompt.cli import main


def test_prompts_are_shown_by_role_with_media_in_short(tour: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(tour / "task.yaml"), "-n"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[1:6] == [
        "  system",
        "    Answer in a few words.",
        "  user",
        "    [image/jpeg 512×341 41 KiB coffee.jpg]",
        "    What drink is in the cup?",
    ]
    assert shown[6] == "  answer  coffee"
    assert shown[7].startswith("  MM705 ")
    assert len([line for line in shown if line.startswith("── ")]) == 1


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (["-n", "-c", "3"], 3),
        (["-a"], 25),
        (["-p", "tour-2*"], 6),
        (["--id", "tour-04", "--id", "tour-09"], 2),
        (["--limit", "5"], 5),
        (["-n", "-p", "tour-2*"], 1),
    ],
)
def test_options_choose_the_rows(
    options: list[str], count: int, tour: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", str(tour / "tour.jsonl"), "--no-check", *options]) == 0
    assert capsys.readouterr().out.count("\n── ") + 1 == count


@pytest.mark.parametrize(
    ("options", "count", "said"),
    [
        (["--id", "tuor-04"], 0, "no row has the id 'tuor-04'; did you mean 'tour-04'?"),
        (["--id", "tour-04", "--id", "7"], 1, "no row has the id '7'; the first id is 'tour-01'"),
        (["-p", "geo-*"], 0, "no row has an id that matches 'geo-*'; the first id is 'tour-01'"),
        (["--id", "tour-04", "--id", "7", "--limit", "1"], 1, ""),
        (["--id", "tour-04", "-p", "tour-0[4]"], 1, ""),
    ],
)
def test_an_id_that_no_row_has_is_refused(
    options: list[str], count: int, said: str, tour: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["view", str(tour / "tour.jsonl"), "--no-check", *options]
    for further in ([], ["--html", str(tmp_path / "page.html")]):
        assert main([*words, *further]) == (2 if said else 0)
        done = capsys.readouterr()
        assert further or done.out.count("── tour") == count
        assert said in done.err


def test_a_row_that_cannot_be_sent_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.jsonl").write_text('{"question": "Why?", "image": "none.png"}\nbroken\n')
    assert main(["view", str(tmp_path / "rows.jsonl")]) == 0
    shown = capsys.readouterr().out
    assert "  MM201 no such file" in shown
    assert "rows.jsonl:2" in shown


def test_a_file_without_rows_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.json").write_text('["What?", "Who?"]', encoding="utf-8")
    assert main(["view", str(tmp_path / "rows.json")]) == 0
    told = capsys.readouterr().err.splitlines()
    assert "rows.json:1: MM007 the array holds no rows: " in told[-2]
    assert told[-1] == "mmprompt: no row to show"


def test_fit_shows_what_is_sent_after_the_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from PIL import Image

    Image.new("RGB", (40, 30), "red").save(tmp_path / "red.bmp")
    (tmp_path / "rows.jsonl").write_text('{"question": "Which colour?", "image": "red.bmp"}\n')
    words = ["view", str(tmp_path / "rows.jsonl"), "--target", "openai", "--no-check"]
    assert main(words) == 0
    assert "image/bmp" in capsys.readouterr().out
    assert main([*words, "--fit"]) == 0
    assert "[image/png 40×30" in capsys.readouterr().out


def test_two_inputs_are_not_served(tour: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(tour / "tour.jsonl"), str(tour / "tour.jsonl"), "--serve"]) == 2
    assert "--serve shows one input; leave out the other one, or write a page" in capsys.readouterr().err


def test_control_characters_of_the_data_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"id": "\x1b[2J", "question": "a\x1b[31m\u202eb\nc", "answer": "\x07"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    assert main(["view", str(tmp_path / "rows.jsonl"), "--no-check"]) == 0
    shown = capsys.readouterr().out
    assert "    a\\x1b[31m\\u202eb\n    c\n" in shown
    assert re.findall(r"[\x00-\x09\x0b-\x1f\u202e]", shown) == []


def on_terminal(arguments: list[str], typed: bytes) -> str:
    """Run the command on a terminal of its own, and return what it shows."""
    parent, child = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "mmprompt", *arguments], stdin=child, stdout=child, stderr=child, close_fds=True
    ):
        os.close(child)
        os.write(parent, typed)
        shown = b""
        while True:
            try:
                block = os.read(parent, 1 << 16)
            except OSError:  # the terminal is closed
                break
            if not block:
                break
            shown += block
    os.close(parent)
    return shown.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_enter_shows_the_next_prompt_and_q_ends(tour: Path) -> None:
    shown = on_terminal(["view", str(tour / "task.yaml"), "--no-check"], b"\nq\n")
    assert shown.count("── tour-") == 2
    assert "\x1b[2mAnswer in a few words.\x1b[0m" in shown  # from the template
    assert "What drink is in the cup?\r\n" in shown  # from the row


def test_what_is_not_sent_is_told_after_the_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data.csv"
    data.write_text("picture,question,page\ncup.png,What is it?,7\n")
    assert main(["view", str(data), "-n"]) == 0
    hint = "add --map picture=image, or use a task with a template"
    told = f"note: MM605 the row: only text is sent, but 'picture' looks like image; {hint}\n"
    assert capsys.readouterr().err == told
    assert main(["view", str(data), "-n", "--no-check"]) == 0
    assert not capsys.readouterr().err
