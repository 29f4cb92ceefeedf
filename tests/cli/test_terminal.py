"""What a person at a terminal sees of ``mmprompt render``: the last line, errors, notes, media in short, the bar."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from closing_line import closing
from command_line import exit_code
from hypothesis import given
from hypothesis import strategies as st

from mmprompt.cli import main
from mmprompt.cli.report import _AlikeMessages

pytestmark = pytest.mark.skipif(os.name == "nt", reason="terminals of POSIX")
KEYS = [
    "code",
    "severity",
    "message",
    "hint",
    "file",
    "line",
    "row",
    "id",
    "column",
    "offset",
    "part",
    "fixable",
    "url",
    "medium",
]


def write_rows(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def rendered(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["render", *map(str, arguments)])
    return code, *capfd.readouterr()


def at_terminal(environment: dict[str, str], *arguments: object, **streams: Any) -> tuple[int, bytes]:
    """Run the command with a terminal for each stream that is not given; return its exit code and what was shown."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    words = [sys.executable, "-m", "mmprompt", "render", *map(str, arguments)]
    streams = {"stdout": theirs, "stderr": theirs, **streams}
    shown = b""
    with subprocess.Popen(words, env=environment, **streams) as process:
        os.close(theirs)
        while select.select([ours], [], [], 30)[0]:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux: the other end is closed
                break
            if not piece:
                break
            shown += piece
        os.close(ours)
        code = process.wait(30)
    return code, shown


# ---- the last line


def test_a_media_column_that_no_row_has_is_an_error_but_no_row(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", {"q": "1"}, {"q": "2"})
    prompt = {"image": "{image}", "text": "{q}"}
    template = {"type": "MMPromptTemplate", "template": {"round": [{"role": "HUMAN", "prompt_mm": prompt}]}}
    task, out, faults = tmp_path / "task.json", tmp_path / "out.jsonl", tmp_path / "errors.jsonl"
    task.write_text(json.dumps({"dataset": str(rows), "infer_cfg": {"prompt_template": template}}))
    code, _, err = rendered(capfd, task, "-o", out, "--errors", faults)
    assert code == 1
    assert "no row has the column 'image', which a media slot names" in err
    assert err.splitlines()[-1].startswith(f"mmprompt: 2 of 2 rows written to {out}, {out.stat().st_size} bytes; ")
    assert len(out.read_text().splitlines()) == 2
    [fault] = map(json.loads, faults.read_text().splitlines())
    assert (fault["row"], fault["column"]) == (None, "image")


def test_every_run_ends_with_its_counts(tmp_path: Path, tour: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"
    data = write_rows(
        tmp_path / "data.jsonl", {"question": "a"}, {"question": None}, {"question": "b", "photo": "a.jpg"}
    )
    code, _, err = rendered(capfd, data, "-o", out)
    assert (code, closing(err)[1:]) == (1, (2, 1, str(out), out.stat().st_size, 0, 1, ""))
    code, text, err = rendered(capfd, data)
    assert (code, closing(err)[1:]) == (1, (2, 1, "standard output", len(text), 0, 1, ""))
    code, text, err = rendered(capfd, tour / "tour.jsonl", "--limit", 2)
    assert (code, closing(err)[1:]) == (0, (2, 0, "standard output", len(text), 0, 1, ""))


def test_a_run_that_writes_nothing_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("old\n")
    data = write_rows(tmp_path / "data.jsonl", {"question": None}, {"question": ""})
    code, _, err = rendered(capfd, data, "-o", out)
    assert (code, err.splitlines()[-1]) == (1, f"mmprompt: nothing was written to {out}; 2 left out, no notes")
    write_rows(data, {"question": "a"}, {"question": None}, {"question": "b"})
    code, _, err = rendered(capfd, data, "-o", out, "--strict")
    stopped = f"mmprompt: stopped at this row (--strict); nothing was written to {out}; 1 left out, no notes"
    assert (code, err.splitlines()[1:]) == (1, [stopped])
    assert out.read_text() == "old\n"
    code, text, err = rendered(capfd, data, "--strict")
    assert (code, closing(err).written, closing(err).size, text.count("\n")) == (1, 1, len(text), 1)


def test_an_interrupted_run_says_how_far_it_came(tmp_path: Path, interrupted_environment: dict[str, str]) -> None:
    fifo, out = tmp_path / "rows", tmp_path / "out.jsonl"
    os.mkfifo(fifo)
    words = [
        sys.executable,
        "-m",
        "mmprompt",
        "render",
        str(fifo),
        "-o",
        str(out),
        "--errors",
        str(tmp_path / "e.jsonl"),
    ]
    hear = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}  # as in a shell's foreground
    process = subprocess.Popen(words, env=interrupted_environment, stderr=subprocess.PIPE, **hear)
    with process, fifo.open("r+b", buffering=0) as rows:
        rows.write(b'{"question": null}\n{"question": "a"}\n' * 500)
        told = process.stderr.readline().decode()
        for _ in range(4):
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                stderr = told + process.communicate(timeout=30)[1].decode()
                break
        process.kill()
    assert exit_code(process) == 130
    end = closing(stderr)
    assert (end.stopped, end.output) == ("interrupted", str(out))
    assert 0 < end.left_out <= 500
    assert not out.exists()


# ---- errors


def test_alike_errors_are_told_three_times_and_counted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = [{"question": None}] * 100 + [{"question": "q"}] + [{"question": ""}] * 4
    data = write_rows(tmp_path / "data.jsonl", *rows)
    code, _, err = rendered(capfd, data)
    told = closing(err).told.splitlines()
    assert code == 1
    assert [line.partition("data.jsonl:")[2].split(":")[0] for line in told[:6]] == ["1", "2", "3", "102", "103", "104"]
    assert told[6].startswith(
        "… and 97 more rows have this error: MM604 column 'question' is null, and it feeds the message; "
    )
    assert told[7].startswith("… and 1 more row has this error: MM700 the row has nothing to send; ")
    assert told[8:] == ["… --errors FILE.jsonl writes all errors to a file"]
    assert closing(err).left_out == 104


def test_errors_that_differ_in_a_name_alone_are_told_twenty_times(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = [{"question": "q"}, *[{"image": f"media/{n}.jpg"} for n in range(1000)]]
    data = write_rows(tmp_path / "data.jsonl", *rows)
    errors = tmp_path / "errors.jsonl"
    code, _, err = rendered(capfd, data, "--errors", errors)
    told = [line for line in closing(err).told.splitlines() if not line.startswith("note: ")]
    assert (code, len(told)) == (1, 21)
    assert told[-1].startswith("… and 980 more rows have this error: MM201 no such file: …; ")
    assert len(errors.read_text().splitlines()) == 1000


@pytest.mark.parametrize("more", [(), ("--engine", "local", "--rows-per-shard", "5"), ("--workers", "2")])
def test_rows_that_all_miss_their_files_are_told_with_the_folders_that_are_searched(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    rows = [{"image": ["media/a.jpg", f"{n}.jpg"]} for n in range(12)]
    data = write_rows(tmp_path / "data.jsonl", *rows, {"question": "q"}, *rows[:3])
    errors, root = tmp_path / "errors.jsonl", tmp_path / "wrong"
    root.mkdir()
    output = ("-o", tmp_path / "out.jsonl")
    code, _, err = rendered(capfd, data, *output, "--media-root", root, "--errors", errors, *more)
    told = [line for line in closing(err).told.splitlines() if not line.startswith("note: ")]
    assert code == 1
    assert [line.partition("data.jsonl:")[2].split(":")[0] for line in told[:3]] == ["1", "2", "3"]
    where = f"relative paths begin at '{tmp_path}', '{root}'"
    assert told[3] == f"… each of the first 4 rows misses a file; {where}: check --media-root DIR"
    assert told[4].startswith("… and 12 more rows have this error: MM201 no such file: 'media/a.jpg'; ")
    assert len(told) == 5
    assert len(errors.read_text().splitlines()) == 15


@pytest.mark.parametrize(
    ("data", "name", "lies", "root"),
    [
        ("data.jsonl", "a.jpg", "pics/a.jpg", "pics"),
        ("coco/Annotations/data.jsonl", "a.jpg", "coco/val/a.jpg", "coco/val"),
        ("coco/notes/data.jsonl", "val/a.jpg", "coco/val/a.jpg", "coco"),
        ("coco/notes/data.jsonl", "a.jpg", "coco/val/a.jpg", ""),
        ("data.jsonl", "a.jpg", "pics/b.jpg", ""),
        ("data.jsonl", "../a.jpg", "pics/a.jpg", ""),
    ],
)
def test_the_folder_nearby_that_holds_a_missing_file_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], data: str, name: str, lies: str, root: str
) -> None:
    for path in (data, lies):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / lies).write_bytes(b"no picture")
    path = write_rows(tmp_path / data, {"image": name, "question": "q"}, {"question": "q"})
    said = f"… {name!r} lies in another folder: pass --media-root {tmp_path / root}"
    assert (said in rendered(capfd, path)[2].splitlines()) is bool(root)
    assert main(["check", str(path)]) == 1
    assert capfd.readouterr().out.count(f"{path}: {said}\n") == bool(root)


def test_missing_files_of_later_rows_are_told_one_by_one(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = [{"image": f"{n}.jpg"} for n in range(7)]
    data = write_rows(tmp_path / "data.jsonl", *rows[:5], {"question": "q"}, *rows[5:])
    told = closing(rendered(capfd, data)[2]).told.splitlines()
    assert [line.partition("data.jsonl:")[2].split(":")[0] for line in told[:6]] == ["1", "2", "3", "", "7", "8"]
    assert told[6].startswith("… and 2 more rows have this error: MM201 no such file: …; ")


messages = st.tuples(
    st.sampled_from(["MM201", "MM700"]),
    st.sampled_from(["no file 'a'", "no file 'b'", "row 7", "row 8", "blank"]),
    st.sampled_from(["", "mend"]),
)


@given(st.lists(messages, max_size=300), st.integers(1, 3))
def test_each_message_is_shown_or_counted_and_never_more_often_than_three_times(given: list[Any], most: int) -> None:
    alike = _AlikeMessages()
    shown = [message for message in given if alike.shows(message, most)]
    assert all(shown.count(message) <= most for message in shown)
    assert len(shown) + sum(number for _, number in alike.counted()) == len(given)
    assert shown[:1] == given[:1]


def test_messages_of_endless_kinds_take_no_endless_memory() -> None:
    alike = _AlikeMessages()
    shown = sum(alike.shows(("MM201", f"error {'x' * n}", ""), 3) for n in range(5000))
    assert shown <= 200
    assert sum(number for _, number in alike.counted()) == 5000 - shown


def test_all_errors_go_to_a_file_as_data(tmp_path: Path, broken: Path, capfd: pytest.CaptureFixture[str]) -> None:
    errors = tmp_path / "errors.jsonl"
    code, _, err = rendered(capfd, broken / "broken.jsonl", "--errors", errors)
    found = [json.loads(line) for line in errors.read_text(encoding="utf-8").splitlines()]
    faults = json.loads((broken / "faults.json").read_text(encoding="utf-8"))["faults"]
    assert code == 1
    assert all(list(finding) == KEYS and finding["severity"] == "error" and finding["hint"] for finding in found)
    *of_rows, repeated = found
    assert [finding["line"] for finding in of_rows] == [fault["line"] for fault in faults]
    assert [finding["row"] for finding in of_rows] == [fault["line"] - 1 for fault in faults]
    assert [f["column"] for f in of_rows] == [fault["column"] for fault in faults]
    assert (repeated["line"], repeated["column"]) == (44, "id")
    told = closing(err).told.splitlines()
    for finding, line in zip(found, told, strict=False):
        assert line.startswith(f"{finding['file']}:{finding['line']}: {finding['code']} {finding['message']}; ")
        assert f"#{finding['code'].lower()}-" in finding["url"]
    by_line = {finding["line"]: finding for finding in of_rows}
    assert (by_line[12]["id"], by_line[12]["offset"], by_line[12]["part"]) == ("b-12", 17, 1)


def test_errors_as_data_keep_ids_rows_and_every_character(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"id": 1, "q": "a"},
        {"id": 2.5, "q": "a"},
        {"id": "杯", "q": "a"},
        {"id": {"a": [1]}, "q": "a"},
        ["no row"],
    ]
    write_rows(tmp_path / "data.jsonl", {"q": "before"}, *rows)
    template = {"prompt_template": {"template": {"round": [{"role": "HUMAN", "prompt": "{q}"}]}}}
    reader = {"input_columns": ["q", "p"], "test_range": "[1:]"}
    task = tmp_path / "task.json"
    task.write_text(json.dumps({"dataset": "data.jsonl", "reader_cfg": reader, "infer_cfg": template}))
    errors = tmp_path / "errors.jsonl"
    assert rendered(capfd, task, "--errors", errors)[0] == 1
    found = [json.loads(line) for line in errors.read_text(encoding="utf-8").splitlines()]
    assert [(f["row"], f["line"], f["id"]) for f in found] == [
        (1, 2, 1), (2, 3, 2.5), (3, 4, "杯"), (4, 5, {"a": [1]}), (5, 6, None),
    ]  # fmt: skip


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux")
def test_a_full_disk_under_the_errors_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = write_rows(tmp_path / "data.jsonl", *[{"question": None}] * 500)
    code, _, err = rendered(capfd, data, "-o", tmp_path / "out.jsonl", "--errors", "/dev/full")
    assert (code, err.splitlines()[-1]) == (2, "mmprompt: No space left on device: /dev/full")
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("errors", ["data.jsonl", "out.jsonl", "nowhere/errors.jsonl", "."])
def test_errors_go_to_a_file_of_their_own(
    errors: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = write_rows(tmp_path / "data.jsonl", {"question": "q"}).read_bytes()
    code, _, err = rendered(capfd, "data.jsonl", "-o", "out.jsonl", "--errors", errors)
    assert (code, err.count("\n")) == (2, 1)
    assert (tmp_path / "data.jsonl").read_bytes() == before
    assert os.listdir(tmp_path) == ["data.jsonl"]


def opening_faults(folder: Path) -> dict[str, list[str]]:
    """Return commands that end before their first row, by a part of what they say."""
    write_rows(folder / "rows.jsonl", {"question": "q"})
    (folder / "task.yaml").write_text("dataset: rows.jsonl\ninfer_cgf: {}\n")
    (folder / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"question": "q"}\n' * 9999)[:-9])
    return {
        "no such file": ["gone.jsonl"],
        "unknown key 'infer_cgf'": ["task.yaml"],
        "unknown target": ["rows.jsonl", "--target", "vlm"],
        "cut off": ["cut.jsonl.gz", "-o", "out.jsonl"],
        "does not exist": ["rows.jsonl", "-o", "nowhere/out.jsonl"],
    }


@pytest.mark.parametrize("number", range(5))
def test_an_error_that_ends_the_command_is_in_the_file_too(
    number: int, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said, words = list(opening_faults(tmp_path).items())[number]
    faults = tmp_path / "errors.jsonl"
    write_rows(faults, dict.fromkeys(KEYS, "of an earlier run"))
    code, _, err = rendered(capfd, *words, "--errors", faults)
    assert (code, said in err) == (2, True)
    [fault] = map(json.loads, faults.read_text().splitlines())
    assert (list(fault), said in fault["message"], fault["row"]) == (KEYS, True, None)


def test_an_error_at_opening_overwrites_errors_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    opening_faults(tmp_path)
    before = (tmp_path / "rows.jsonl").read_bytes()
    code, _, err = rendered(capfd, "task.yaml", "--errors", "rows.jsonl")  # the dataset of the task
    assert (code, (tmp_path / "rows.jsonl").read_bytes()) == (2, before)
    assert "'rows.jsonl' holds something else than errors, so the error is not written to it" in err


def test_repeated_ids_in_the_file_have_their_rows(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data, faults = tmp_path / "rows.jsonl", tmp_path / "errors.jsonl"
    data.write_text('\n{"id": 1, "question": "q"}\n\n{"id": 2, "question": "q"}\n{"id": 1, "question": "q"}\n')
    code, out, err = rendered(capfd, data, "--errors", faults)
    assert (code, out.count("\n"), closing(err).left_out) == (1, 3, 0)
    [fault] = map(json.loads, faults.read_text().splitlines())
    assert (fault["line"], fault["row"]) == (5, 2)
    assert "the same id stands in line 2" in fault["message"]


def test_a_repeated_id_of_rows_without_lines_names_rows(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    data, faults = tmp_path / "rows.parquet", tmp_path / "errors.jsonl"
    pandas.DataFrame([{"id": 7, "question": "q"}, {"id": 8, "question": "q"}, {"id": 7, "question": "r"}]).to_parquet(
        data
    )
    assert rendered(capfd, data, "--errors", faults)[0] == 1
    [fault] = map(json.loads, faults.read_text().splitlines())
    assert (fault["line"], fault["row"], fault["message"]) == (None, 2, "row 2 has the id of row 0 (counted from 0)")


WITHOUT_COLUMN = {
    "the slot {q}": {"infer_cfg": {"prompt_template": {"template": "{q}"}}},
    "which input_columns lists": {"reader_cfg": {"input_columns": ["q"]}},
    "which has the role question": {"dataset": {"path": "rows.jsonl", "columns": {"q": "question"}}},
    "by which rows are joined": {"dataset": {"path": "rows.jsonl", "join": ["more.jsonl:q"]}},
    "which mvbench has": {"dataset": {"path": "rows.jsonl", "format": "mvbench"}},
}


@pytest.mark.parametrize("said", list(WITHOUT_COLUMN))
def test_a_column_that_no_row_has_is_told_once(said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_rows(tmp_path / "more.jsonl", {"q": "q"})
    task = tmp_path / "task.json"
    task.write_text(json.dumps({"dataset": "rows.jsonl", **WITHOUT_COLUMN[said]}))
    lacking = [{"question": "x"}] * 5
    whole = {"q": "y", "question": "x", "video": "https://example.com/v.mp4", "candidates": ["a"]}
    for rows, times in (
        (lacking, 1),
        ([*lacking, whole, *lacking], 3),
    ):
        write_rows(tmp_path / "rows.jsonl", *rows)
        code, _, err = rendered(capfd, task, "--media", "keep")
        told = [line for line in err.splitlines() if not line.startswith("mmprompt: ")]
        assert (code, [said in line for line in told[: times + 2]]) == (1, [True] * (times + 1) + [False])
        more = len([row for row in rows if row is not whole]) - times
        assert re.match(f"… and {more} more rows have this error: MM\\d{{3}} no column ", told[times])


# ---- notes


@pytest.mark.parametrize(("options", "code"), [([], 0), (["--strict-notes"], 1)])
def test_strict_notes_make_notes_a_finding_and_write_all_the_same(
    options: list[str], code: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    row = {"question": "q", "photo": "a.jpg"}
    data = write_rows(tmp_path / "data.jsonl", row, {"question": "q"}, row)
    found, text, err = rendered(capfd, data, *options)
    assert (found, text.count("\n"), closing(err).notes) == (code, 3, 1)
    assert closing(err).told.startswith("note: MM605 2 of 3 rows: only text is sent, but 'photo' looks like image")
    write_rows(data, {"question": "q"})
    assert rendered(capfd, data, *options)[0] == 0


def test_alike_notes_of_rows_are_told_three_times_and_counted(tmp_path: Path, broken: Path, command: Any) -> None:
    png = base64.b64encode((broken / "media/album/triangle.png").read_bytes()).decode()
    data = write_rows(tmp_path / "data.jsonl", *[{"image": f"data:image/jpeg;base64,{png}"}] * 50)
    done = command("render", data, "-o", tmp_path / "out.jsonl", "--strict-notes")
    end = closing(done.stderr.decode())
    assert (done.returncode, end.written, end.notes) == (1, 50, 50)
    lines = end.told.splitlines()
    assert [line.partition("data.jsonl:")[2][:8] for line in lines[:3]] == ["1: MM204", "2: MM204", "3: MM204"]
    assert lines[3:] == ["note: … and 47 more such notes: MM204 declared image/jpeg, bytes are PNG"]


# ---- media in short


def test_media_are_in_short_on_a_terminal_and_whole_elsewhere(
    command_environment: dict[str, str], tour: Path, tmp_path: Path, command: Any
) -> None:
    code, shown = at_terminal(command_environment, tour / "tour.jsonl", stderr=subprocess.DEVNULL)
    lines = [json.loads(line) for line in shown.decode().splitlines()]
    whole = command("render", tour / "tour.jsonl").stdout
    assert code == 0
    assert [line["id"] for line in lines] == [json.loads(line)["id"] for line in whole.splitlines()]
    assert len(shown) < 30_000 < len(whole)
    image = lines[0]["messages"][0]["content"][0]["image_url"]["url"]
    real = json.loads(whole.splitlines()[0])["messages"][0]["content"][0]["image_url"]["url"]
    begun = image.partition("…")[0]
    assert real.startswith(begun)
    size = len(base64.b64decode(real.partition(",")[2]))
    assert image.endswith(f"… ({size:,} bytes)")
    out = tmp_path / "out.jsonl"
    assert at_terminal(command_environment, tour / "tour.jsonl", "-o", out)[0] == 0
    assert out.read_bytes() == whole


@pytest.mark.parametrize(
    "options",
    [
        *(pytest.param(["--target", name], marks=pytest.mark.slow) for name in ("anthropic", "gemini")),
        ["--emit", "prompt"],
        ["--media", "keep"],
        ["--frames", "2"],
    ],
)
def test_in_every_form_media_are_short(
    options: list[str], command_environment: dict[str, str], tour: Path, broken: Path, tmp_path: Path, command: Any
) -> None:
    png = base64.b64encode((broken / "media/album/triangle.png").read_bytes()).decode()
    sources = [png, f"data:image/png;base64,{png}", str(tour / "media/coffee.jpg")]
    rows = [{"id": n, "image": source, "question": "q"} for n, source in enumerate(sources)]
    if options[0] == "--frames":
        rows.append({"id": 3, "video": str(tour / "media/clip.mp4")})
    data = write_rows(tmp_path / "data.jsonl", *rows)
    arguments = [data, "--media-root", tour, *options]
    code, shown = at_terminal(command_environment, *arguments, stderr=subprocess.DEVNULL)
    lines = shown.decode().splitlines()
    whole = command("render", *arguments).stdout.decode().splitlines()
    assert (code, len(lines)) == (0, len(rows))
    for short, line in zip(lines, whole, strict=True):
        assert json.loads(short)["id"] == json.loads(line)["id"]
        assert len(short) < 400
    assert len(max(whole, key=len)) > 400


def test_text_is_whole_on_a_terminal_and_moves_no_cursor(command_environment: dict[str, str], tmp_path: Path) -> None:
    text = "你好 " * 500 + "\x1b[2J\x9b31m\u202e"
    data = write_rows(tmp_path / "data.jsonl", {"question": text})
    _, shown = at_terminal(command_environment, data, stderr=subprocess.DEVNULL)
    assert not re.search(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]", shown.decode())
    assert json.loads(shown)["messages"][0]["content"] == text


def test_notes_on_media_are_told_on_a_terminal_too(
    command_environment: dict[str, str], tmp_path: Path, broken: Path
) -> None:
    png = base64.b64encode((broken / "media/album/triangle.png").read_bytes()).decode()
    data = write_rows(tmp_path / "data.jsonl", {"image": f"data:image/jpeg;base64,{png}"})
    _, shown = at_terminal(command_environment, data)
    assert b"declared image/jpeg, bytes are PNG" in shown


# ---- the bar


@pytest.mark.parametrize(
    ("options", "total"), [([], b"300/300"), (["--limit", "20"], b"20/20"), (["--limit", "9999"], b"300/300")]
)
def test_the_bar_shows_rows_rate_and_the_total_where_it_is_known(
    options: list[str], total: bytes, command_environment: dict[str, str], tmp_path: Path
) -> None:
    data = write_rows(tmp_path / "data.jsonl", *[{"question": "q"}] * 300)
    code, shown = at_terminal(command_environment, data, "-o", tmp_path / "out.jsonl", *options)
    assert code == 0
    assert total in shown
    assert re.search(rb"rows/s\]", shown)
    assert shown.rstrip().endswith(b"; 0 left out, no notes")


def test_the_bar_has_no_total_where_it_is_not_known(command_environment: dict[str, str], tour: Path) -> None:
    with (tour / "tour.csv").open("rb") as rows:
        _, shown = at_terminal(command_environment, "-", "--media-root", tour, stdin=rows, stdout=subprocess.DEVNULL)
    assert re.search(rb"\b\d+ rows", shown)
    assert not re.search(rb"\d/\d", shown)


# ---- what is misspelt


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rendr", "a"], "unknown command 'rendr'; did you mean 'render'?"),
        (["plugin"], "unknown command 'plugin'; did you mean 'plugins'?"),
        (["render", "--hlep"], "--hlep: did you mean '--help'?"),
        (["render", "a", "--strict-note"], None),  # an abbreviation
        (["stats", "a", "--target", "gpt"], "--target gpt; it is an option of render, run, check, view; see"),
        (["score", "a", "--temperature=0"], "--temperature=0; it is an option of run; see"),
        (["render", "a", "--eror", "x"], "did you mean '--errors'?"),
        (["render", "a", "--drop-last-asistant"], "did you mean '--drop-last-assistant'?"),
        (["render", "--lmit=3", "--workers", "0", "a"], "--lmit: did you mean '--limit'?"),
    ],
)
def test_a_misspelt_word_names_the_nearest_of_its_kind(
    arguments: list[str], words: str | None, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code = main(arguments)
    except SystemExit as left:
        code = left.code  # type: ignore[assignment]
    err = capfd.readouterr().err
    assert (code, err.count("\n")) == (2, 1)
    assert ("no such file" if words is None else words) in err


# ---- near misses of tags, from the file to the terminal


def test_a_misspelt_tag_is_an_error_with_its_place(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"content": "<ais_image_start>a.jpg<AIS_CONTENT_TAG>What?"},
        {"content": "<AIS_TEXT_START>see <ais_image_start><AIS_CONTENT_TAG>"},
    ]
    data = write_rows(tmp_path / "data.jsonl", *rows)
    code, text, err = rendered(capfd, data)
    assert (code, [json.loads(line)["id"] for line in text.splitlines()]) == (1, [1])
    error, note = closing(err).told.splitlines()
    assert "data.jsonl:1: MM102 misspelt tag <ais_image_start>; write <AIS_IMAGE_START>" in error
    assert error.endswith(" (content @0, sample 0)")
    assert note.startswith("note: MM102 1 of 2 rows: a text segment of 'content' holds a misspelt tag")
    tsv = tmp_path / "data.tsv"
    tsv.write_text("id\tcontent\n1\t<ais_image_start>a.jpg\n")  # a format that is never scanned
    assert rendered(capfd, tsv)[0] == 0
