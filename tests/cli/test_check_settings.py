"""Known findings, the settings of a project, another dataset to compare with, and runs that go on."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from PIL import Image

from mmprompt.check.store import Store
from mmprompt.cli import _arguments, main
from mmprompt.cli.check_settings import CheckSettings
from mmprompt.cli.checking import opened_inputs
from mmprompt.tasks.load import dataset_task

BAD = '{"id": "%s", "question": "Why %s?", "image": "%s.jpg", "answer": "x"}\n'
GOOD = '{"id": "%s", "question": "Why %s?", "answer": "so"}\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("data.jsonl").write_text("".join(BAD % (name, name, name) for name in ("q-1", "q-2")))
    return tmp_path


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str], str]:
    """Run the command; return its exit code, the findings as ``code id``, and what it wrote to standard error."""
    form = [] if "--write-baseline" in arguments else ["--output-format", "jsonl"]
    code = main(["check", *arguments, *form])
    written = capsys.readouterr()
    findings = [json.loads(line) for line in written.out.splitlines()]
    return code, [f"{f['code']} {f['id']}" for f in findings], written.err


# ---- known findings


def test_known_findings_are_not_told_again_even_if_lines_move(capsys: pytest.CaptureFixture[str]) -> None:
    code, told, err = check(capsys, "data.jsonl", "--baseline", "known.json", "--write-baseline")
    assert (code, told) == (0, [])
    assert "2 errors" in err
    assert "known.json" in err
    Path("data.jsonl").write_text(BAD % ("q-0", "q-0", "q-0") + Path("data.jsonl").read_text())
    assert check(capsys, "data.jsonl", "--baseline", "known.json")[:2] == (1, ["MM201 q-0"])
    assert check(capsys, "data.jsonl")[1] == ["MM201 q-0", "MM201 q-1", "MM201 q-2"]


def test_a_baseline_moves_with_its_project(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check(capsys, "data.jsonl", "--baseline", "known.json", "--write-baseline")
    (folder / "sub").mkdir()
    monkeypatch.chdir(folder / "sub")
    assert check(capsys, str(folder / "data.jsonl"), "--baseline", "../known.json")[:2] == (0, [])


@pytest.mark.parametrize("text", ["", "[]", '{"findings": [{}]}', '{"findings": 1}'])
def test_a_file_that_is_no_baseline_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("known.json").write_text(text)
    code, _, err = check(capsys, "data.jsonl", "--baseline", "known.json")
    assert code == 2
    assert "'known.json' is not a baseline" in err


def test_a_baseline_that_is_missing_can_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = check(capsys, "data.jsonl", "--baseline", "known.json")
    assert (code, err) == (2, "mmprompt: MM602 no such baseline: 'known.json'; write it with --write-baseline\n")


def test_codes_in_lower_case_are_ignored_too(capsys: pytest.CaptureFixture[str]) -> None:
    settings('[tool.mmprompt.ignore]\n"data.jsonl" = ["mm201"]\n')
    assert check(capsys, "data.jsonl")[1] == []


@pytest.mark.parametrize("pattern", ["data.jsonl", "./data.jsonl", "./*.jsonl"])
def test_a_pattern_may_begin_in_the_projects_folder(pattern: str, capsys: pytest.CaptureFixture[str]) -> None:
    settings(f'[tool.mmprompt.ignore]\n"{pattern}" = ["MM201"]\n')
    assert check(capsys, "data.jsonl")[1] == []


def test_writing_a_baseline_needs_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = check(capsys, "data.jsonl", "--write-baseline")
    assert code == 2
    assert "--baseline FILE" in err


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--output-file", "r.txt"], "--output-file"),
        (["--output-format", "json"], "--output-format"),
        (["--statistics"], "--statistics"),
    ],
)
def test_writing_a_baseline_refuses_options_on_a_report(
    options: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = check(capsys, "data.jsonl", "--baseline", "known.json", "--write-baseline", *options)
    assert code == 2
    assert err == f"mmprompt: MM602 --write-baseline writes no report, and {named} is for one; give one of the two\n"
    assert not [name for name in ("known.json", "r.txt") if Path(name).exists()]


def test_a_difference_does_not_go_into_the_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    Path("known.json").write_text('{"findings": []}')
    code, _, err = check(capsys, "data.jsonl", "--baseline", "known.json", "--write-baseline", "--diff")
    assert code == 2
    assert err == "mmprompt: MM602 --diff writes nothing, and --write-baseline does; give one of the two\n"
    assert Path("known.json").read_text() == '{"findings": []}'


# ---- settings of the project


def settings(text: str) -> None:
    Path("pyproject.toml").write_text(text)


def test_the_project_chooses_codes_and_the_command_line_replaces_them(capsys: pytest.CaptureFixture[str]) -> None:
    settings('[tool.mmprompt]\nselect = ["MM7"]\n')
    assert check(capsys, "data.jsonl")[:2] == (0, [])
    assert check(capsys, "data.jsonl", "--select", "MM2")[1] == ["MM201 q-1", "MM201 q-2"]


def test_codes_to_ignore_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    Path("data.jsonl").write_text(Path("data.jsonl").read_text() + '{"id": "c", "question": "Why?", "answer": null}\n')
    settings('[tool.mmprompt]\nignore = ["MM2", "MM6", "MM715"]\n')
    assert check(capsys, "data.jsonl")[1] == ["MM701 c"]
    assert check(capsys, "data.jsonl", "--ignore", "MM701")[1] == []


def test_a_folder_below_the_project_has_its_settings(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings('[tool.mmprompt]\nignore = ["MM2"]\n')
    (folder / "sub").mkdir()
    monkeypatch.chdir(folder / "sub")
    assert check(capsys, "../data.jsonl")[:2] == (0, [])


@pytest.mark.parametrize(
    ("key", "left"),
    [
        ("data.jsonl", []),
        ("*.jsonl", []),
        ("*", []),
        ("other.jsonl", ["MM201 q-1", "MM201 q-2"]),
        ("data.jsonl#q-1", ["MM201 q-2"]),
        ("data.jsonl#q", ["MM201 q-1", "MM201 q-2"]),
    ],
)
def test_codes_are_ignored_in_a_file_or_in_one_sample(
    key: str, left: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    settings(f'[tool.mmprompt.ignore]\n"{key}" = ["MM201"]\n')
    assert check(capsys, "data.jsonl")[1] == left


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[tool.mmprompt]\nselct = ["MM2"]\n', "did you mean 'select'?"),
        ('[tool.mmprompt]\nselect = "MM2"\n', "give a list of codes"),
        ('[tool.mmprompt]\nselect = ["MX2"]\n', "did you mean 'MM2'?"),
        ("[tool.mmprompt]\nworkers = 0\n", "give a whole number from 1"),
        ("[tool.mmprompt]\ntarget = 1\n", "give a text"),
        ('[tool.mmprompt]\ntarget = "opnai"\n', "did you mean 'openai'?"),
        ('[tool.mmprompt.ignore]\n"data.jsonl" = "MM2"\n', "give a list of codes"),
        ("[tool]\nmmprompt = 1\n", "write [tool.mmprompt]"),
        ("[tool.mmprompt\n", "malformed TOML"),
    ],
)
def test_wrong_settings_are_named(text: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    settings(text)
    code, _, err = check(capsys, "data.jsonl")
    assert code == 2
    assert named in err
    assert "pyproject.toml" in err


def test_the_project_names_target_and_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    settings('[tool.mmprompt]\nbaseline = "known.json"\n')
    assert check(capsys, "data.jsonl", "--write-baseline")[0] == 0
    assert check(capsys, "data.jsonl")[1] == []
    settings('[tool.mmprompt]\ntarget = "openai"\n')
    Image.effect_noise((300, 300), 90).save("noise.bmp")
    Path("data.jsonl").write_text('{"id": 1, "question": "Why?", "image": "noise.bmp", "answer": "x"}\n')
    assert check(capsys, "data.jsonl", "--select", "MM8")[1] == ["MM804 1"]


# ---- targets


def test_without_a_target_only_what_all_targets_refuse_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    Image.effect_noise((300, 300), 90).save("noise.bmp")
    Path("data.jsonl").write_text('{"id": 1, "question": "Why?", "image": "noise.bmp", "answer": "x"}\n')
    assert check(capsys, "data.jsonl", "--select", "MM8")[1] == []
    assert check(capsys, "data.jsonl", "--select", "MM8", "--target", "vllm")[1] == []
    assert check(capsys, "data.jsonl", "--select", "MM8", "--target", "openai")[1] == ["MM804 1"]


# ---- another dataset


def test_rows_that_another_dataset_has_too_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("data.jsonl").write_text("".join(GOOD % (name, name) for name in "abc"))
    Path("train.csv").write_text("id,question,answer\n7,Why b?,otherwise\n")
    assert check(capsys, "data.jsonl", "--against", "train.csv")[1] == ["MM711 b"]
    assert check(capsys, "data.jsonl")[1] == []


# ---- runs that go on


OFTEN = """
import sys
from mmprompt.check import store
store._EVERY = 0.02  # seconds between the states that are kept
from mmprompt.cli import main
sys.exit(main())
"""


def noise(count: int, side: int = 700) -> None:
    """Write a dataset whose rows take some time each."""
    Image.effect_noise((side, side), 90).save("noise.png")
    whole = Path("noise.png").read_bytes()
    rows = []
    for number in range(count):
        Path(f"{number}.png").write_bytes(whole + bytes([number % 256, number // 256]))  # distinct bytes
        rows.append({"id": number, "question": f"Why {number}?", "image": f"{number}.png", "answer": "x"})
        rows.append({"id": f"no {number}", "question": f"Who {number}?", "image": "nowhere.png", "answer": "x"})
    rows += rows[:2]
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_killed_run_goes_on_and_gives_the_same_report(capsys: pytest.CaptureFixture[str]) -> None:
    noise(60)
    options = ["data.jsonl", "--output-format", "json", "--select", "ALL"]
    assert main(["check", *options, "--output-file", "whole.json"]) == 1
    process = subprocess.Popen([sys.executable, "-c", OFTEN, "check", *options, "--output-file", "r.json"])
    try:
        assert saved_rows("r.json.state", process) > 0
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert not Path("r.json").exists()
    before = saved_rows("r.json.state", process)
    assert main(["check", *options, "--output-file", "r.json", "--resume"]) == 1
    assert 0 < before < 122
    assert json.loads(Path("r.json").read_text()) == json.loads(Path("whole.json").read_text())
    assert not Path("r.json.state").exists()


def saved_rows(state: str, process: subprocess.Popen[bytes]) -> int:
    """Return how many rows the state has, as soon as it has some."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if Path(state).exists():
            try:
                with closing(sqlite3.connect(f"file:{state}?mode=ro", uri=True, timeout=5)) as database:
                    rows = database.execute("SELECT rows FROM progress").fetchone()
            except sqlite3.OperationalError:  # it is being made
                rows = None
            if rows is not None and rows[0]:
                return int(rows[0])
        if process.poll() not in (None, -signal.SIGKILL):
            break
        time.sleep(0.02)
    return 0


def test_a_run_goes_on_only_with_the_same_data_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    noise(40)
    options = ["data.jsonl", "--output-file", "r.txt"]
    process = subprocess.Popen([sys.executable, "-c", OFTEN, "check", *options])
    try:
        assert saved_rows("r.txt.state", process) > 0
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    code = main(["check", *options, "--resume", "--select", "MM2"])
    assert code == 2
    assert "is of a run with other data, other options or another version" in capsys.readouterr().err
    Path("r.txt.state").write_bytes(b"not a database, but long enough to be looked at" * 100)
    assert main(["check", *options, "--resume"]) == 2


def test_two_runs_do_not_share_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    noise(40)
    options = ["data.jsonl", "--output-file", "r.txt"]
    process = subprocess.Popen([sys.executable, "-c", OFTEN, "check", *options])
    try:
        assert saved_rows("r.txt.state", process) > 0
        os.kill(process.pid, signal.SIGSTOP)  # so it has not ended yet, however long the others take
        for more in ([], ["--resume"]):
            code, _, err = check(capsys, *options, *more)
            assert code == 2
            assert "another run writes to 'r.txt.state'; wait until that run ends" in err
        assert Path("r.txt.state").exists()
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert main(["check", *options, "--resume"]) in (0, 1)
    assert not list(Path().glob("r.txt.*"))


def test_the_annotations_of_vqav2_are_files_of_the_dataset() -> None:
    questions = [{"question_id": n, "image_id": 1, "question": "What colour?"} for n in range(200)]
    answers = [{"question_id": n, "answers": [{"answer": "red"}], "multiple_choice_answer": "red"} for n in range(200)]
    subset = {"data_subtype": "val2014"}
    Path("v2_OpenEnded_questions.json").write_text(json.dumps({**subset, "questions": questions}))
    annotations = Path("v2_annotations.json")
    annotations.write_text(json.dumps({**subset, "annotations": answers}))
    found = dataset_task("v2_OpenEnded_questions.json").dataset
    assert found is not None
    assert found.files == ["v2_OpenEnded_questions.json", "v2_annotations.json"]


def test_going_on_needs_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = check(capsys, "data.jsonl", "--resume")
    assert code == 2
    assert "--output-file FILE" in err


def test_a_state_that_cannot_be_written_is_wrong_usage(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "r.txt.state").mkdir()
    code, _, err = check(capsys, "data.jsonl", "--output-file", "r.txt")
    assert code == 2
    assert "r.txt.state" in err
    assert "Traceback" not in err


def test_a_file_that_is_no_state_stays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = folder / "r.txt.state"
    state.write_text("mine")
    for more in ([], ["--resume"]):
        code, _, err = check(capsys, "data.jsonl", "--output-file", "r.txt", *more)
        assert code == 2
        assert "'r.txt.state' is there, and is not the state of a check" in err
        assert state.read_text() == "mine"
    state.unlink()
    with closing(sqlite3.connect(state)) as database:
        database.execute("CREATE TABLE mine (own)")
    assert check(capsys, "data.jsonl", "--output-file", "r.txt")[0] == 2
    state.unlink()
    state.symlink_to("mine.txt")
    assert check(capsys, "data.jsonl", "--output-file", "r.txt")[0] == 2
    assert not Path("mine.txt").exists()


def test_a_state_of_another_form_is_named_as_such(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["data.jsonl", "--output-file", "r.txt"]
    Store("r.txt.state", "about").close()
    with closing(sqlite3.connect("r.txt.state")) as database:  # as an earlier version had it
        database.executescript(
            "PRAGMA user_version = 0; DROP TABLE progress; CREATE TABLE progress (signature TEXT, items INTEGER)"
        )
        database.execute("INSERT INTO progress VALUES ('about', 3)")
        database.commit()
    before = (folder / "r.txt.state").read_bytes()
    code, _, err = check(capsys, *options, "--resume")
    assert code == 2
    what = "'r.txt.state' was written by another version of mmprompt"
    assert f"{what}; remove it, or leave out --resume to check everything anew" in err
    assert (folder / "r.txt.state").read_bytes() == before
    assert check(capsys, *options)[0] in (0, 1)
    assert not (folder / "r.txt.state").exists()


@pytest.mark.parametrize(
    "options",
    [
        ["r.txt.state"],
        ["data.jsonl", "--against", "r.txt.state"],
        ["data.jsonl", "--baseline", "r.txt.state"],
        ["data.jsonl", "--fix", "-o", "r.txt.state"],
        ["data.jsonl", "a.csv", "--baseline", "r.txt.state.2"],
    ],
)
def test_the_state_lies_apart_from_inputs_and_outputs(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.csv").write_text("id,question,answer\n1,Why?,x\n")
    if options[-2:-1] != ["-o"]:
        Path(options[-1]).write_bytes(Path("data.jsonl").read_bytes())
    before = sorted((path.name, path.read_bytes()) for path in Path().iterdir())
    code, _, err = check(capsys, *options, "--output-file", "r.txt")
    assert code == 2
    assert "r.txt.state" in err
    assert "is also an input or output" in err
    assert sorted((path.name, path.read_bytes()) for path in Path().iterdir()) == before


@pytest.mark.skipif(sys.platform == "win32", reason="needs /dev/stdout")
def test_standard_output_has_no_state() -> None:
    for name in ("-", "/dev/stdout"):
        words = [sys.executable, "-m", "mmprompt", "check", "data.jsonl", "--output-file", name, "--select", "MM201"]
        assert subprocess.run(words, check=False, capture_output=True).stdout.count(b"MM201") == 2
    assert [path.name for path in Path().iterdir()] == ["data.jsonl"]


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files")
@pytest.mark.parametrize(
    ("options", "rows"), [(["--output-file", "r.txt"], 3000), pytest.param([], 12_000, marks=pytest.mark.slow)]
)
def test_a_full_disk_is_wrong_usage(options: list[str], rows: int, interrupted_environment: dict[str, str]) -> None:
    import resource

    Path("data.jsonl").write_text("".join(BAD % (number, number, number) for number in range(rows)))
    process = subprocess.run(
        [sys.executable, "-m", "mmprompt", "check", "data.jsonl", *options],
        env=interrupted_environment,  # the file of a measured coverage would be cut, too
        check=False,
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 17, 1 << 17)),
    )
    assert process.returncode == 2, process.stderr
    assert b"Traceback" not in process.stderr
    assert b"cannot keep the state of the check" in process.stderr
    assert not options or b"r.txt.state" in process.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize("kind", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_a_killed_run_leaves_no_temporary_file(kind: signal.Signals, folder: Path) -> None:
    (folder / "tmp").mkdir()
    words = [sys.executable, "-m", "mmprompt", "check", "-", "--format", "jsonl"]
    environment = {**os.environ, "TMPDIR": str(folder / "tmp")}
    with subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        for number in range(4000):  # more than the pipe holds: the run reads them, and waits for more
            process.stdin.write((GOOD % (number, number)).encode())
        process.stdin.flush()
        process.send_signal(kind)
    assert process.returncode == -kind
    assert not list((folder / "tmp").glob("*.sqlite"))


CHANGED = {
    "task": ("task.yaml", "dataset: {path: data.jsonl}\n", ["task.yaml"], "data.jsonl"),
    "join": (
        "j.csv",
        "id,more\n0,1\n",
        ["data.jsonl", "--join", "j.csv:id"],
        "j.csv",
    ),
    "folder": ("sub/a.jsonl", GOOD % ("s", "s"), ["sub"], "sub/a.jsonl"),
    "against": ("sub/a.jsonl", GOOD % ("s", "s"), ["data.jsonl", "--against", "sub"], "sub/a.jsonl"),
    "pattern": ("sub/a.jsonl", GOOD % ("s", "s"), ["sub/*.jsonl"], "sub/a.jsonl"),
}


@pytest.mark.parametrize("kind", CHANGED)
def test_a_run_does_not_go_on_with_changed_data(kind: str) -> None:
    name, text, words, changed = CHANGED[kind]
    Path("sub").mkdir()
    Path(name).write_text(text)
    first = signature(*words)
    assert signature(*words) == first
    with open(changed, "a") as file:
        file.write(GOOD % ("new", "new"))
    assert signature(*words) != first


def test_a_run_does_not_go_on_to_a_report_with_pictures() -> None:
    assert signature("data.jsonl", "--output-format", "json") == signature("data.jsonl", "--output-format", "sarif")
    assert signature("data.jsonl", "--output-format", "json") != signature("data.jsonl", "--output-format", "html")


def signature(*words: str) -> str:
    arguments = _arguments(["check", *words])
    (each,) = opened_inputs(arguments)
    return CheckSettings.of(arguments).signature(arguments, each.paths, each.task)


# ---- on a terminal


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal")
def test_a_terminal_shows_rows_and_findings_as_they_come() -> None:
    import fcntl
    import pty
    import struct
    import termios

    Path("data.jsonl").write_text("".join(BAD % (number, number, number) for number in range(3000)))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    words = [sys.executable, "-m", "mmprompt", "check", "data.jsonl", "--statistics", "--select", "MM201"]
    shown = b""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:  # Linux: the other end is closed
            pass
        told = process.stdout.read() if process.stdout else b""
    os.close(ours)
    assert (process.returncode, told) == (1, b"3000  MM201  [ ]  missing-file\n")
    assert b"3000/3000" in shown
    assert b" rows/s" in shown
    assert b" findings]" in shown
    assert b"3,000 rows checked: 3,000 errors" in shown
