"""No output of any command replaces a medium, or a file that the command reads."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from command_line import run_here

from mmprompt import TaskError, convert_dataset, load_task, render_file, view_html

PICTURE = Path(__file__).parents[2] / "fixtures" / "tour" / "media" / "sign.png"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 3\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dataset of two pictures; the second is not there yet, and a pointer stands in its place."""
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "p1.png").write_bytes(PICTURE.read_bytes())
    (tmp_path / "m" / "p2.png").write_bytes(POINTER)
    rows = [{"id": n, "question": "What is it?", "image": f"m/p{n}.png", "answer": "x"} for n in (1, 2)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "more.jsonl").write_text('{"id": 1, "hint": "h"}\n')
    (tmp_path / "task.yaml").write_text("dataset: {path: d.jsonl, train: dev.jsonl}\n")
    (tmp_path / "dev.jsonl").write_bytes((tmp_path / "d.jsonl").read_bytes())
    (tmp_path / "known.json").write_text('{"findings": []}\n')
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


RENDER, CONVERT, CHECK = ("render", "d.jsonl"), ("convert", "d.jsonl", "--store", "embed"), ("check", "d.jsonl")
ENGINE = ("--engine", "local", "--workers", "1")
PLACES = [
    (*RENDER, "-o"),
    (*RENDER, "-o", "out.jsonl", "--errors"),
    (*RENDER, "--max-side", "10", "--workers", "2", "-o"),
    (*RENDER, *ENGINE, "-o"),
    (*RENDER, *ENGINE, "-o", "out.jsonl", "--errors"),
    (*CONVERT, "--to", "jsonl"),
    (*CONVERT, "--to", "jsonl", "out.jsonl", "--errors"),
    (*CHECK, "--output-file"),
    (*CHECK, "--workers", "2", "--output-file"),
    (*CHECK, *ENGINE, "--output-file"),
    (*CHECK, "--write-baseline", "--baseline"),
    (*CHECK, "--fix", "-o"),
    ("view", "d.jsonl", "--html"),
    ("run", "d.jsonl", "--model", "builtin:shapes", "-o"),
    ("run", "d.jsonl", "--model", "builtin:shapes", "-o", "j.jsonl", "--errors"),
    ("init", "d.jsonl", "-o"),
]


@pytest.mark.parametrize("place", PLACES, ids=" ".join)
@pytest.mark.parametrize("medium", ["m/p1.png", "m/p2.png"])
def test_a_medium_of_the_dataset_is_never_an_output(folder: Path, place: Sequence[str], medium: str) -> None:
    before = contents(folder)
    done = run_here(*place, medium, cwd=folder)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(b"mmprompt: ")
    after = contents(folder)
    assert {name: after.get(name) for name in before} == before


@pytest.mark.parametrize("place", [place for place in PLACES if not {*ENGINE, "2"} & {*place}], ids=" ".join)
def test_a_medium_that_no_row_names_is_no_output_either(folder: Path, place: Sequence[str]) -> None:
    (folder / "other.png").write_bytes(PICTURE.read_bytes())
    before = contents(folder)
    done = run_here(*place, "other.png", cwd=folder)
    assert (done.returncode, b"'other.png'" in done.stderr) == (2, True)
    after = contents(folder)
    assert {name: after.get(name) for name in before} == before


@pytest.mark.parametrize("place", PLACES, ids=" ".join)
def test_what_the_command_reads_is_never_an_output(folder: Path, place: Sequence[str]) -> None:
    before = contents(folder)
    os.link(folder / "d.jsonl", folder / "other.jsonl")
    (folder / "link.jsonl").symlink_to("d.jsonl")
    for name in ("d.jsonl", "./m/../d.jsonl", "link.jsonl", "other.jsonl"):
        done = run_here(*place, name, cwd=folder)
        assert done.returncode == 2, name
        assert len(done.stderr.splitlines()) <= 2
        assert {known: data for known, data in contents(folder).items() if known in before} == before


@pytest.mark.parametrize(
    "words",
    [
        ("render", "task.yaml", "-o", "dev.jsonl"),
        ("render", "task.yaml", "-o", "task.yaml"),
        ("render", "task.yaml", "-o", "out.jsonl", "--errors", "dev.jsonl"),
        ("render", "d.jsonl", "--join", "more.jsonl:id", "-o", "more.jsonl"),
        ("render", ".", "--format", "jsonl", "--split", "d", "-o", "d.jsonl"),
        ("render", "*.jsonl", "-o", "more.jsonl"),
        ("check", "d.jsonl", "--baseline", "known.json", "--output-file", "known.json"),
        ("check", "d.jsonl", "--against", "dev.jsonl", "--output-file", "dev.jsonl"),
        ("check", "task.yaml", "--output-file", "d.jsonl"),
        ("check", "task.yaml", "--baseline", "task.yaml", "--write-baseline"),
        ("check", "d.jsonl", "--output-file", "pyproject.toml"),
        ("convert", "d.jsonl", "more.jsonl", "--to", "jsonl", "--join", "more.jsonl:id"),
        ("view", "task.yaml", "--html", "task.yaml"),
        ("view", "task.yaml", "--html", "dev.jsonl"),
        ("run", "task.json", "--model", "builtin:shapes", "-o", "j.jsonl", "--report", "task.json"),
        ("run", "j.manifest.json", "--model", "builtin:shapes", "-o", "j"),
        ("run", "d.jsonl", "--model", "model", "-o", "j.jsonl", "--report", "model/config.json"),
        ("init", "d.jsonl", "-o", "m/../d.jsonl"),
    ],
    ids=" ".join,
)
def test_no_file_that_stands_behind_the_input_is_an_output(folder: Path, words: Sequence[str]) -> None:
    (folder / "pyproject.toml").write_text("[tool.mmprompt]\n")
    (folder / "task.json").write_text((folder / "task.yaml").read_text())
    (folder / "j.manifest.json").write_text('[{"id": 1, "question": "What is it?", "answer": "x"}]')
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text("{}")
    before = contents(folder)
    assert run_here(*words, cwd=folder).returncode == 2
    after = contents(folder)
    assert {name: after.get(name) for name in before} == before


def test_the_file_behind_standard_input_is_not_replaced(folder: Path) -> None:
    before = contents(folder)
    with (folder / "d.jsonl").open("rb") as rows:
        words = [sys.executable, "-m", "mmprompt", "render", "-", "-o", "d.jsonl"]
        done = subprocess.run(words, cwd=folder, stdin=rows, capture_output=True, timeout=60, check=False)
    assert done.returncode == 2
    assert contents(folder) == before


def test_the_project_file_names_no_dataset_as_a_baseline_to_write(folder: Path) -> None:
    before = (folder / "d.jsonl").read_bytes()
    (folder / "pyproject.toml").write_text('[tool.mmprompt]\nbaseline = "d.jsonl"\n')
    assert run_here("check", "d.jsonl", "--write-baseline", cwd=folder).returncode == 2
    assert (folder / "d.jsonl").read_bytes() == before


def test_a_baseline_that_is_written_replaces_nothing_but_a_baseline(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.mmprompt]\nselect = ["MM1"]\nbaseline = "dev.jsonl"\n')
    before = contents(folder)
    for words in ((), ("--baseline", "pyproject.toml"), ("--baseline", "task.yaml")):
        done = run_here("check", "d.jsonl", "--write-baseline", *words, cwd=folder)
        assert done.returncode == 2
        assert b"is not a baseline" in done.stderr
        assert contents(folder) == before
    (folder / "empty.json").write_bytes(b"")
    for name in ("known.json", "empty.json", "new.json"):
        done = run_here("check", "d.jsonl", "--baseline", name, "--write-baseline", "--select", "ALL", cwd=folder)
        assert done.returncode == 0
        assert b"MM" in (folder / name).read_bytes()


def test_a_report_on_a_dataset_that_cannot_be_opened_replaces_no_rows(folder: Path) -> None:
    (folder / "splits").mkdir()
    for name in "abc":
        shutil.copy(folder / "d.jsonl", folder / "splits" / f"{name}.jsonl")
    (folder / "wrong.yaml").write_text("dataset: {path: dev.jsonl}\nfoo: 1\n")
    before = contents(folder)
    for words in (("splits", "--output-file", "splits/b.jsonl"), ("wrong.yaml", "--output-file", "dev.jsonl")):
        done = run_here("check", *words, cwd=folder)
        assert done.returncode == 2
        assert b"holds no report, and may be the dataset that cannot be opened" in done.stderr
        assert contents(folder) == before
    for form in ("json", "jsonl"):
        words = ("check", "wrong.yaml", "--output-file", f"report.{form}", "--output-format", form)
        assert [run_here(*words, cwd=folder).returncode for _ in range(2)] == [1, 1]


@pytest.mark.parametrize("medium", ["m/p1.png", "m/p2.png"])
def test_functions_replace_no_medium_either(folder: Path, medium: str) -> None:
    data, out = folder / "d.jsonl", folder / medium
    before = contents(folder)
    for call in (
        lambda: render_file(data, out, on_error=print),
        lambda: convert_dataset(data, out, to="jsonl", store="embed", on_error=print),
        lambda: view_html(data, out),
    ):
        with pytest.raises(TaskError, match="write to another file"):
            call()
        assert contents(folder) == before


def test_functions_replace_no_file_of_a_task_that_was_loaded_before(folder: Path) -> None:
    task, before = load_task(folder / "task.yaml"), contents(folder)
    for name in ("d.jsonl", "dev.jsonl"):
        for write in (lambda out: render_file(task, out, on_error=print), lambda out: view_html(task, out)):
            with pytest.raises(TaskError, match="is also an input or output"):
                write(folder / name)
    assert contents(folder) == before


def test_a_list_of_errors_of_an_earlier_run_is_replaced_when_the_run_ends(folder: Path) -> None:
    (folder / "errors.jsonl").write_text("older\n")
    done = run_here("render", "d.jsonl", "-o", "out.jsonl", "--errors", "errors.jsonl", cwd=folder)
    assert done.returncode == 1
    [error] = map(json.loads, (folder / "errors.jsonl").read_text().splitlines())
    assert error["code"] == "MM203" or "Git LFS" in error["message"]


@pytest.mark.skipif(os.name != "posix", reason="named pipes of POSIX")
@pytest.mark.parametrize(
    "words",
    [
        (*RENDER, "-o", "pipe"),
        (*RENDER, "-o", "out.jsonl", "--errors", "pipe"),
        (*CONVERT, "pipe", "--to", "jsonl"),
        (*CHECK, "--output-file", "pipe"),
        ("view", "d.jsonl", "--html", "pipe"),
    ],
    ids=" ".join,
)
def test_an_output_that_is_typed_may_be_a_pipe_which_stays_one(folder: Path, words: Sequence[str]) -> None:
    os.mkfifo(folder / "pipe")
    read = subprocess.Popen(["cat", folder / "pipe"], stdout=subprocess.PIPE)
    try:
        assert run_here(*words, cwd=folder).returncode in {0, 1}
        assert (folder / "pipe").is_fifo()
        assert read.communicate(timeout=30)[0]
    finally:
        read.kill()
        read.wait()
