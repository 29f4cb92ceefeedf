"""Links and pipes in the place of manifests, locks, plans, states and parts: no file behind them changes, nothing hangs."""

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

from mmprompt.scale.work_folder import WorkFolder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and named pipes of POSIX")

SHAPES = Path(__file__).parents[2] / "fixtures" / "shapes"
RUN = ("run", "shapes/task.yaml", "--model", "builtin:shapes", "--limit", "3", "-o", "j.jsonl")
RENDER = ("render", "d.jsonl", "-o", "out.jsonl")
ENGINE = ("--engine", "local", "--workers", "1", "--rows-per-shard", "2")
VIEW = ("view", "d.jsonl", "--html", "page.html")
CHECK = ("check", "d.jsonl", "--output-file", "report.txt", "--select", "ALL")
BATCH = ("render", "d.jsonl", "-o", "out.jsonl", "--emit", "batch", "--shard-rows", "2")
CONVERT = ("convert", "d.jsonl", "out.csv", "--to", "csv", "--store", "files")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dataset, a task, and a file and a folder that no command knows."""
    shutil.copytree(SHAPES, tmp_path / "shapes")
    rows = [{"id": n, "question": f"What is {n}?", "image": "red.png"} for n in range(5)]
    (tmp_path / "red.png").write_bytes((Path(__file__).parents[2] / "fixtures/tour/media/sign.png").read_bytes())
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    (tmp_path / "mine" / "00000.lines").write_text("mine, though it has such a name")
    return tmp_path


def ended(folder: Path, words: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    """Run a command that must not wait for anything."""
    command = [sys.executable, "-m", "mmprompt", *words]
    return subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)


def mine(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (folder / "mine").iterdir()}


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (RUN, "j.jsonl.manifest.json"),
        (RUN, "j.jsonl.manifest.json.part"),
        (RUN, "j.jsonl.lock"),
        ((*RUN, *ENGINE), "j.jsonl.shards.lock"),
        ((*RENDER, *ENGINE), "out.jsonl.shards.lock"),
        (VIEW, "page.html.part"),
        (CHECK, "report.txt.state"),
        (CHECK, "report.txt.state.lock"),
        (CHECK, "report.txt.state-journal"),
        (BATCH, "out-00001.jsonl"),
        (BATCH, "out-00002.jsonl"),
        (BATCH, "out.manifest.json"),
        ((*RENDER, *ENGINE, "--shards"), "out-00001.jsonl"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
@pytest.mark.parametrize("target", ["notes.txt", "new.txt"])
def test_a_link_beside_an_output_is_not_followed(folder: Path, words: Sequence[str], name: str, target: str) -> None:
    before = mine(folder)
    (folder / name).symlink_to(Path("mine") / target)
    done = ended(folder, words)
    assert mine(folder) == before
    if not name.endswith(".part"):  # of these no name is foreseen
        assert done.returncode == 2
        assert f"'{name}' is a link" in done.stderr.decode()
        assert (folder / name).is_symlink()


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize(
    "words", [(*RENDER, *ENGINE), (*RUN, *ENGINE), (*RUN, *ENGINE, "--overwrite"), (*CHECK, *ENGINE)]
)
def test_a_link_in_the_place_of_a_work_folder_loses_nothing(folder: Path, words: Sequence[str], planned: bool) -> None:
    if planned:
        (folder / "mine" / "plan.json").write_text('{"version": 1, "mmprompt": "0", "about": {}, "shards": []}')
    before = mine(folder)
    written = words[words.index("--output-file" if "--output-file" in words else "-o") + 1]
    (folder / f"{written}.shards").symlink_to("mine")
    done = run_here(*words, cwd=folder)
    assert (done.returncode, mine(folder)) == (2, before)
    assert b"holds no run in shards; move it away" in done.stderr


def test_a_work_folder_goes_with_our_own_files_only(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    work = WorkFolder(str(tmp_path / "work"))
    work.begin({}, [])
    with work.written(3, "lines") as writer:
        writer.write([b"x"])
    (tmp_path / "work" / "00004.journal.manifest.json").write_text("{}")
    (tmp_path / "work" / "00004.lines.0123456789ab.part").write_text("")
    (tmp_path / "work" / "12345.stop").touch()
    (tmp_path / "work" / "notes.txt").write_text("mine")
    (tmp_path / "work" / "lines").symlink_to("../mine.txt")
    work.remove()
    assert sorted(os.listdir(tmp_path / "work")) == ["lines", "notes.txt"]
    (tmp_path / "work" / "lines").unlink()
    (tmp_path / "work" / "notes.txt").unlink()
    work.remove()
    assert os.listdir(tmp_path) == ["mine.txt"]


@pytest.mark.parametrize("name", ["plan.json", "00000.report", "00000.journal", "seeded"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_links_and_pipes_in_a_work_folder_are_refused(folder: Path, name: str, kind: str) -> None:
    stopped = (*RENDER, *ENGINE, "--limit", "3")
    work = folder / "out.jsonl.shards"
    WorkFolder(str(work)).begin({}, [])
    (work / name).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(work / name)
    else:
        (work / name).symlink_to("../mine/notes.txt")
    before = mine(folder)
    done = ended(folder, stopped)
    assert (done.returncode, mine(folder)) == (2, before)
    assert b"holds no run in shards; move it away" in done.stderr


JOURNAL = b'{"row":0,"id":1,"turn":null,"label":null,"request":"a","prediction":"x","answer":"x","choices":[]}\n'


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (RUN, "j.jsonl"),
        (RUN, "j.jsonl.manifest.json"),
        (RUN, "j.jsonl.lock"),
        ((*RUN, "--collect", "results"), "results"),
        (("score", "old.jsonl"), "old.jsonl.manifest.json"),
        (("score", "pipe"), "pipe"),
        (("compare", "old.jsonl", "pipe"), "pipe"),
        (("compare", "old.jsonl", "old.jsonl"), "old.jsonl.manifest.json"),
        (("view", "d.jsonl", "--journal", "pipe"), "pipe"),
        ((*RENDER, *ENGINE), "out.jsonl.shards"),
        ((*RENDER, *ENGINE), "out.jsonl.shards.lock"),
        (CHECK, "report.txt.state"),
        ((*CHECK, "--resume"), "report.txt.state"),
        (CHECK, "report.txt.state-journal"),
        ((*CHECK, "--baseline", "known.json"), "known.json"),
        (BATCH, "out-00001.jsonl"),
        (BATCH, "out.manifest.json"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_a_pipe_in_the_place_of_a_file_beside_the_data_hangs_nothing(
    folder: Path, words: Sequence[str], name: str
) -> None:
    (folder / "old.jsonl").write_bytes(JOURNAL)
    os.mkfifo(folder / name)
    done = ended(folder, words)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert (folder / name).is_fifo()


@pytest.mark.parametrize("command", ["render", "view", "check", "stats", "init"])
def test_a_pipe_in_a_folder_of_rows_hangs_nothing(folder: Path, command: str) -> None:
    (folder / "rows").mkdir()
    os.mkfifo(folder / "rows" / "rows.jsonl")
    for path in ("rows", "rows/*.jsonl"):
        done = ended(folder, (command, path))
        assert done.returncode in ((1, 2) if command == "check" else (2,))  # a finding about the folder
        assert b"'rows/rows.jsonl' is no regular file; name it itself to read from it" in done.stdout + done.stderr


@pytest.mark.parametrize("key", ["path: pipe", "path: d.jsonl, train: pipe", 'path: d.jsonl, join: ["pipe:id"]'])
def test_a_task_file_that_names_a_pipe_as_dataset_hangs_nothing(folder: Path, key: str) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "task.yaml").write_text(f"dataset: {{{key}}}\n")
    done = ended(folder, ("render", "task.yaml"))
    assert done.returncode == 2
    assert b"the dataset 'pipe' is no regular file" in done.stderr


@pytest.mark.parametrize("named", [{"dataset": {"path": "pipe"}}, {"task": "pipe.yaml"}])
def test_a_manifest_that_names_a_pipe_hangs_nothing(folder: Path, named: dict[str, object]) -> None:
    assert run_here(*RUN, cwd=folder).returncode == 0
    for name in ("pipe", "pipe.yaml"):
        os.mkfifo(folder / name)
    (folder / "j.jsonl.manifest.json").write_text(json.dumps({"version": 1, **named}))
    done = ended(folder, ("view", "j.jsonl", "-n"))
    assert done.returncode == 0
    assert b"is no regular file" in done.stderr


def test_a_pipe_that_the_project_names_as_its_baseline_hangs_nothing(folder: Path) -> None:
    os.mkfifo(folder / "known")
    (folder / "pyproject.toml").write_text('[tool.mmprompt]\nbaseline = "known"\n')
    for more in ((), ("--write-baseline",)):
        done = ended(folder, ("check", "d.jsonl", *more))
        assert done.returncode == 2
        assert b"is a pipe, and only a regular file is used" in done.stderr


def test_a_pipe_that_is_typed_is_read(folder: Path) -> None:
    rows = (folder / "d.jsonl").read_bytes()
    command = [sys.executable, "-m", "mmprompt", "render", "/dev/stdin", "--media-root", "."]
    done = subprocess.run(command, cwd=folder, input=rows, capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 5)


def test_a_file_that_only_has_the_name_of_a_lock_stays(folder: Path) -> None:
    (folder / "poetry.lock").write_text("packages")
    done = run_here(*RUN[:-1], "poetry", cwd=folder)
    assert done.returncode == 2
    assert b"'poetry.lock' is there, and is not a lock; move it away" in done.stderr
    assert (folder / "poetry.lock").read_text() == "packages"


def test_media_beside_a_conversion_replace_no_other_file(folder: Path) -> None:
    assert run_here(*CONVERT, cwd=folder).returncode == 0
    [medium] = (folder / "out_media").iterdir()
    before = (folder / "out.csv").read_bytes()
    assert run_here(*CONVERT, cwd=folder).returncode == 0  # the same medium may be there
    medium.write_bytes(b"another")
    done = run_here(*CONVERT, cwd=folder)
    assert done.returncode == 2
    assert b"is there, and holds something else; move it away" in done.stderr
    assert (medium.read_bytes(), (folder / "out.csv").read_bytes()) == (b"another", before)
    shutil.rmtree(folder / "out_media")
    (folder / "out_media").symlink_to("mine")
    kept = mine(folder)
    assert run_here(*CONVERT, cwd=folder).returncode == 2
    assert mine(folder) == kept


def test_an_output_that_is_a_link_is_followed(folder: Path) -> None:
    for words, name in ((RENDER, "out.jsonl"), (VIEW, "page.html"), (CHECK, "report.txt"), (CONVERT, "out.csv")):
        (folder / name).symlink_to(Path("mine") / name)
        assert run_here(*words, cwd=folder).returncode in {0, 1}
        assert (folder / name).is_symlink()
        assert (folder / "mine" / name).read_bytes()


def test_a_journal_may_be_a_link(folder: Path) -> None:
    (folder / "j.jsonl").symlink_to("mine/j.jsonl")
    for kept in (b"3 of 3 rows answered in j.jsonl", b"3 of them before this run"):
        done = run_here(*RUN, cwd=folder)
        assert done.returncode == 0
        assert kept in done.stderr
    assert (folder / "mine" / "j.jsonl").read_bytes().count(b"\n") == 3
    assert run_here("score", "j.jsonl", cwd=folder).returncode == 0


def test_no_manifest_makes_a_journal_of_another_file(folder: Path) -> None:
    assert run_here(*RUN, cwd=folder).returncode == 0
    for text in ('{"id": 1}\n', "notes", '{"row":1}\n'):
        (folder / "j.jsonl").write_text(text)
        for more in ((), ("--overwrite",)):
            done = run_here(*RUN, *more, cwd=folder)
            assert done.returncode == 2
            assert b"'j.jsonl' is not a journal of mmprompt run" in done.stderr
            assert (folder / "j.jsonl").read_text() == text
