"""``mmprompt run`` as its users type it: its table, its last line, its exit codes, and what it keeps to itself."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answering import Answering, answering, text_of

SECRET = "sk-never-to-be-seen"


@pytest.fixture
def server() -> Iterator[Answering]:
    """Knows the sums below 10."""
    with answering(lambda body: str(min(sum(map(int, text_of(body).split("+"))), 9))) as served:
        yield served


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    rows = [{"id": n, "question": f"{n}+{n}", "answer": str(2 * n), "category": "odd" if n % 2 else "even"}
            for n in range(8)]  # fmt: skip
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return tmp_path


def last(stderr: bytes) -> str:
    return stderr.decode().splitlines()[-1]


def test_a_run_prints_its_scores_and_says_where_the_replies_are(command: Any, server: Answering, sums: Path) -> None:
    done = command("run", "sums.jsonl", "--base-url", server.base_url, "--model", "m", cwd=sums)
    assert done.returncode == 0, done.stderr
    table = done.stdout.decode()
    assert "sums-m.jsonl: scored by exact, model m" in table
    lines = [line.split() for line in table.splitlines()]
    assert next(line for line in lines if line[0] == "all")[1:4] == ["8", "8", "0.6250"]
    assert next(line for line in lines if line[0] == "even")[1:4] == ["4", "4", "0.7500"]
    assert last(done.stderr) == "mmprompt: 8 of 8 rows answered in sums-m.jsonl; 0 failed, no notes"
    again = command("run", "sums.jsonl", "--base-url", server.base_url, "--model", "m", cwd=sums)
    assert again.stdout == done.stdout
    assert last(again.stderr) == (
        "mmprompt: 8 of 8 rows answered in sums-m.jsonl; 8 of them before this run, 0 failed, no notes"
    )
    assert len(server.bodies) == 8


@pytest.mark.parametrize(("bound", "code"), [("0.625", 0), ("0.63", 1)])
def test_a_score_below_a_bound_exits_with_1(command: Any, server: Answering, sums: Path, bound: str, code: int) -> None:
    options = ("--base-url", server.base_url, "--model", "m", "--fail-under", bound)
    assert command("run", "sums.jsonl", *options, cwd=sums).returncode == code


def test_a_report_holds_the_scores(command: Any, server: Answering, sums: Path) -> None:
    options = ("--base-url", server.base_url, "--model", "m", "--report", "r.json", "--report", "r.html")
    command("run", "sums.jsonl", *options, "--scorer", "number", cwd=sums)
    report = json.loads((sums / "r.json").read_text(encoding="utf-8"))
    assert (report["scorer"], report["score"]) == ("number", 0.625)
    assert "<html" in (sums / "r.html").read_text(encoding="utf-8")


def test_settings_reach_the_server_and_the_manifest(command: Any, server: Answering, sums: Path) -> None:
    given = ("--temperature", "0.5", "--top-p", "0.9", "--max-tokens", "7", "--seed", "3", "--param", "top_k=5")
    options = ("--base-url", server.base_url, "--model", "m", "--limit", "2", "-o", "j.jsonl")
    assert command("run", "sums.jsonl", *options, *given, cwd=sums).returncode == 0
    settings = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 7, "seed": 3, "top_k": 5}
    assert len(server.bodies) == 2
    assert all(settings.items() <= body.items() for body in server.bodies)
    manifest = json.loads((sums / "j.jsonl.manifest.json").read_text("utf-8"))
    assert (manifest["options"], manifest["base_url"]) == (settings, server.base_url)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--param", "top_k"], "KEY=JSON"),
        (["--param", "top_k={"], "KEY=JSON"),
        (["--report", "r.txt"], ".json or .html"),
        (["--scorer", "exct"], "did you mean 'exact'"),
        (["-o", "sums.jsonl"], "also an input"),
        (["-o", "no/j.jsonl"], "does not exist"),
        (["--retry-errors"], "no journal"),
        (["--repeats", "0"], "whole number from 1"),
        (["--timeout", "0"], "number above 0"),
        (["--timeout", "nan"], "number above 0"),
        (["--rpm", "-5"], "number above 0"),
        (["--fail-under", "nan"], "'nan' is not a number"),
        (["--temprature", "0"], "did you mean '--temperature'"),
    ],
)
def test_a_wrong_option_is_told_before_anything_is_asked(
    command: Any, server: Answering, sums: Path, words: list[str], said: str
) -> None:
    before = sorted(os.listdir(sums))
    done = command("run", "sums.jsonl", "--base-url", server.base_url, "--model", "m", *words, cwd=sums)
    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert not server.bodies
    assert sorted(os.listdir(sums)) == before


def test_a_misspelt_column_to_group_by_is_told_before_anything_is_asked(
    command: Any, server: Answering, sums: Path
) -> None:
    words = ("--base-url", server.base_url, "--model", "m", "--group-by", "categry")
    done = command("run", "sums.jsonl", *words, cwd=sums)
    assert done.returncode == 2
    assert "did you mean 'category'?" in done.stderr.decode()
    assert not server.bodies


def test_without_a_server_it_says_how_to_name_one(command: Any, sums: Path) -> None:
    done = command("run", "sums.jsonl", "--model", "m", cwd=sums)
    assert done.returncode == 2
    assert "--base-url" in done.stderr.decode()


def test_failed_rows_are_told_with_their_place_and_exit_with_1(command: Any, sums: Path) -> None:
    def reply(body: dict[str, Any]) -> Any:
        return (400, {"error": {"message": "too hard"}}) if text_of(body) == "3+3" else "1"

    with answering(reply) as server:
        options = ("--base-url", server.base_url, "--model", "m", "--errors", "e.jsonl")
        done = command("run", "sums.jsonl", *options, cwd=sums)
    assert done.returncode == 1
    told = done.stderr.decode()
    assert "sums.jsonl:4: MM901" in told
    assert "too hard" in told
    assert last(done.stderr) == "mmprompt: 7 of 8 rows answered in sums-m.jsonl; 1 failed, no notes"
    (error,) = [json.loads(line) for line in (sums / "e.jsonl").read_text("utf-8").splitlines()]
    assert (error["code"], error["row"], error["id"], error["line"]) == ("MM901", 3, 3, 4)


def test_a_dataset_without_answers_is_asked_and_not_scored(command: Any, server: Answering, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"question": "1+1"}\n', encoding="utf-8")
    done = command("run", "d.jsonl", "--base-url", server.base_url, "--model", "m", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"mmprompt: there is no score: no row has a right answer\n" in done.stderr
    assert json.loads((tmp_path / "d-m.jsonl").read_text("utf-8"))["prediction"] == "2"
    done = command("run", "d.jsonl", "--base-url", server.base_url, "--model", "m", "--fail-under", "0.5", cwd=tmp_path)
    assert done.returncode == 1
    assert "no row has a right answer" in done.stderr.decode()


def test_what_is_odd_is_a_note(command: Any, server: Answering, sums: Path) -> None:
    options = ("--base-url", server.base_url, "--model", "m")
    command("run", "sums.jsonl", *options, cwd=sums)
    lines = (sums / "sums.jsonl").read_text("utf-8").splitlines()
    (sums / "sums.jsonl").write_text("\n".join([*lines[1:], lines[3]]) + "\n", encoding="utf-8")
    told = command("run", "sums.jsonl", *options, cwd=sums).stderr.decode()
    assert "8 lines of sums-m.jsonl belong to no row of the dataset any more" in told
    assert "1 rows have the id of an earlier row" in told


def test_the_key_stands_in_nothing_that_is_written(
    process: Any, sums: Path, command_environment: dict[str, str]
) -> None:
    seen: list[str] = []

    def reply(body: dict[str, Any]) -> Any:
        return 400, {"error": {"message": f"bad key {SECRET}"}}

    with answering(reply) as server:
        options = ("--base-url", server.base_url, "--model", "m", "--header", "X-Team=TEAM", "--errors", "e.jsonl")
        env = {"MMPROMPT_API_KEY": SECRET, "TEAM": SECRET + "2"}
        done = process("run", "sums.jsonl", *options, cwd=sums, env=env)
    seen += [done.stdout.decode(), done.stderr.decode()]
    seen += [path.read_text("utf-8") for path in sums.iterdir()]
    assert done.returncode == 1
    assert any("bad key" in text for text in seen)
    assert not [text for text in seen if SECRET in text]


def test_a_server_that_a_task_file_alone_names_is_not_asked(command: Any, server: Answering, sums: Path) -> None:
    task = {"dataset": {"path": "sums.jsonl"}, "model": {"base_url": "http://models.example/v1", "model": "m"}}
    (sums / "task.json").write_text(json.dumps(task), encoding="utf-8")
    done = command("run", "task.json", cwd=sums)
    assert done.returncode == 2
    assert "models.example" in done.stderr.decode()
    assert "--base-url" in done.stderr.decode()
    task["model"]["base_url"] = server.base_url
    (sums / "task.json").write_text(json.dumps(task), encoding="utf-8")
    done = command("run", "task.json", cwd=sums)
    assert done.returncode == 0
    assert (sums / "sums-m.jsonl").is_file()


def test_rows_come_from_standard_input(command: Any, server: Answering, tmp_path: Path) -> None:
    rows = b'{"id": "a", "question": "1+2", "answer": "3"}\n'
    done = command("run", "-", "--base-url", server.base_url, "--model", "m", stdin=rows, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "rows-m.jsonl").read_text("utf-8"))["prediction"] == "3"
