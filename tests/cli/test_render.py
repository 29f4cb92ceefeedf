"""``mmprompt render`` as its users meet it: a process, its streams, its exit code and its files."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from closing_line import closing
from command_line import exit_code
from time_taken import wait_until

import mmprompt
from mmprompt.cli import main

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals, FIFOs and terminals of POSIX")
PNG = base64.b64encode((Path(__file__).parents[2] / "fixtures/broken/media/album/triangle.png").read_bytes()).decode()


def write_rows(path: Path, *rows: Any) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path, tour: Path) -> Path:
    """A dataset folder with one picture and one clip of the tour."""
    media = tmp_path / "media"
    media.mkdir()
    for name in ("coffee.jpg", "杯子 #1.jpg", "clip.mp4", "spinner.gif"):
        (media / name).write_bytes((tour / "media" / name).read_bytes())
    return tmp_path


@contextmanager
def started(environment: dict[str, str], *arguments: object, **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command beside the block, at whose end it is killed if it still runs."""
    words = [sys.executable, "-m", "mmprompt", *map(str, arguments)]
    # a shell that started the tests in the background made them deaf to SIGINT, and the child would inherit that
    hear = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, env=environment, **{**hear, **streams, **more}) as process:
        try:
            yield process
        finally:
            process.kill()


# ---- help, version, usage


def test_version_is_that_of_the_package(process: Any) -> None:
    done = process("--version")
    assert (done.returncode, done.stdout.decode()) == (0, f"mmprompt {mmprompt.__version__}\n")


@pytest.mark.parametrize("arguments", [["--help"], ["render", "--help"]])
def test_help_goes_to_stdout_and_has_an_example(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    out, err = capfd.readouterr()
    assert (left.value.code, err) == (0, "")
    assert re.search(r"examples:\n(.*\n)*  mmprompt render \S+", out)


def test_no_command_is_a_usage_error(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rendr", "a"], "render"),
        (["render", "nowhere.jsonl"], "no such file: 'nowhere.jsonl'"),
        (["render", "DATA", "--target", "vlm"], "did you mean 'vllm'?"),
        (["render", "DATA", "--format", "jsnl"], "did you mean 'jsonl'?"),
        (["render", "DATA", "--emit", "mesages"], "did you mean 'messages'?"),
        (["render", "DATA", "--media", "inlin"], "did you mean 'inline'?"),
        (["render", "DATA", "--map", "a=imag"], "did you mean 'image'?"),
        (["render", "DATA", "--media-root", "nowhere"], "the media root 'nowhere'"),
        (["render", "DATA", "--limit", "many"], "'many' is not a whole number"),
        (["render", "DATA", "--limit", "-1"], "not a whole number"),
        (["render", "DATA", "--workers", "0"], "'0' is not a whole number"),
        (["render", "DATA", "--dataset", "x.jsonl"], "--dataset is for a task file"),
        (["render", "DATA", "--train", "x.jsonl"], "--train goes with --dataset"),
        (["render", "DATA", "--abbr", "x"], "--abbr is for the config of a runner"),
        (["render", "DATA", "--nonsense"], "--nonsense"),
        (
            ["render", "DATA", "--targt", "openai"],
            "--targt openai; did you mean '--target'?; see mmprompt render --help",
        ),
        (["render", "DATA", "--max_side=3"], "did you mean '--max-side'?"),
        (["render", "DATA", "MORE"], "no such file: 'MORE'"),
        (["render", "DATA", ""], "no such file: ''"),
        (["--verzion"], "did you mean '--version'?; see mmprompt --help"),
        (["render", "DATA", "-o", "nowhere/out.jsonl"], "the folder of the output 'nowhere/out.jsonl' does not exist"),
        (["render", "nowhere.yaml", "-o", "nowhere/out.jsonl"], "create it"),  # before there is any work
        (["render", "DATA", "-o", "."], "'.' is a folder; name a file in it"),
        (["render", "DATA", "-o", "new/"], "'new/' is a folder"),
        (["render", "nowhere.yaml"], "no such file: 'nowhere.yaml'; check the path"),
    ],
)
def test_a_usage_error_is_one_line_with_the_nearest_known(
    arguments: list[str], words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = write_rows(tmp_path / "data.jsonl", {"question": "q"})
    try:
        code = main([str(data) if word == "DATA" else word for word in arguments])
    except SystemExit as left:
        code = left.code  # type: ignore[assignment]
    out, err = capfd.readouterr()
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err
    assert os.listdir(tmp_path) == ["data.jsonl"]


def test_a_fault_of_ours_has_an_exit_code_of_its_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    task = tmp_path / "task.py"
    task.write_text(
        "class Hostile(str):\n    def find(self, *_): raise RuntimeError('from within')\n"
        "dataset = {'rows': [{'content': Hostile('<AIS_TEXT_START>x')}]}\n"
    )
    assert main(["render", str(task)]) == 3
    out, err = capfd.readouterr()
    assert out == ""
    assert "internal error" in err.splitlines()[-1]


@pytest.mark.parametrize(("closed", "words"), [("0", b"standard input is closed"), ("1", b"standard output is closed")])
def test_a_closed_stream_is_told(
    closed: str, words: bytes, tmp_path: Path, command_environment: dict[str, str]
) -> None:
    data = write_rows(tmp_path / "data.jsonl", {"question": "q"})
    line = f'"{sys.executable}" -m mmprompt render "{"-" if closed == "0" else data}" {closed}{"<" if closed == "0" else ">"}&-'
    done = subprocess.run(line, shell=True, capture_output=True, env=command_environment, check=False, timeout=30)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert words in done.stderr


def test_rows_are_rendered_with_standard_error_closed(tmp_path: Path, command_environment: dict[str, str]) -> None:
    data = write_rows(tmp_path / "data.jsonl", {"question": "q"}, {"question": None})
    line = f'"{sys.executable}" -m mmprompt render "{data}" 2>&-'
    done = subprocess.run(line, shell=True, stdout=subprocess.PIPE, env=command_environment, check=False, timeout=30)
    assert (done.returncode, done.stdout) == (1, b'{"id":0,"messages":[{"role":"user","content":"q"}]}\n')


# ---- where the output goes


def test_the_output_appears_whole_and_alone(command: Any, process: Any, tour: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = process("render", tour / "tour.jsonl", "-o", out)
    assert (done.returncode, done.stdout) == (0, b"")
    assert closing(done.stderr.decode())[1:] == (25, 0, str(out), out.stat().st_size, 0, 1, "")
    assert out.read_bytes() == command("render", tour / "tour.jsonl").stdout
    assert os.listdir(tmp_path) == ["out.jsonl"]
    umask = os.umask(0)
    os.umask(umask)
    assert out.stat().st_mode & 0o777 == 0o666 & ~umask


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_the_old_output_is_kept_when_a_run_dies(
    end: signal.Signals, tmp_path: Path, interrupted_environment: dict[str, str], tour: Path
) -> None:
    out = tmp_path / "out.jsonl"
    out.write_bytes(b"old\n")
    fifo = tmp_path / "rows"
    os.mkfifo(fifo)

    def others() -> set[str]:
        return set(os.listdir(tmp_path)) - {out.name, fifo.name}

    rendering = started(interrupted_environment, "render", fifo, "--media-root", tour, "-o", out)
    # opened for both, the pipe is there at once, and does not wait for a process that fails before
    with rendering as process, fifo.open("r+b", buffering=0) as rows:
        rows.write(b'{"image": "media/coffee.jpg"}\n' * 30 + b'{"question": null}\n')
        assert b"rows:31: " in process.stderr.readline()  # so all that a run imports is there, and it waits
        assert wait_until(lambda: written(process.pid, tmp_path) or any(map(size, map(tmp_path.joinpath, others()))))
        assert out.read_bytes() == b"old\n"
        stderr = ended_by(process, end)
    assert out.read_bytes() == b"old\n"
    if end == signal.SIGINT:
        assert exit_code(process) == 130
        assert b"Traceback" not in stderr
    if end == signal.SIGINT or nameless_files(tmp_path):
        assert not others()


def ended_by(process: subprocess.Popen[bytes], end: signal.Signals) -> bytes:
    """Send the signal until the process ends, and return its stderr: Python sees one that comes just before a read late."""
    for _ in range(4):
        process.send_signal(end)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)  # its standard input stays open: it ends by the signal, not because there are no more rows
            return process.stderr.read()
    raise AssertionError("the process goes on")


def nameless_files(folder: Path) -> bool:
    """Tell whether the system has files without a name here, of which nothing is left when a process is killed."""
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))
    except (AttributeError, OSError):
        return False
    return True


def size(file: Path) -> int:
    """Return the size of a file; 0 where it is gone, as the name is by which the run tries whether it can give names."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def written(process: int, folder: Path) -> int:
    """Return how many bytes a process has written to a file of this folder that has no name."""
    opened = Path(f"/proc/{process}/fd")
    sizes = [0]
    for descriptor in opened.iterdir() if opened.is_dir() else ():
        try:
            if os.readlink(descriptor).startswith(f"{folder}/#"):
                sizes.append(size(descriptor))
        except FileNotFoundError:
            continue
    return max(sizes)


def test_the_datasets_of_a_task_are_never_the_output(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = write_rows(tmp_path / "data.jsonl", {"question": "q"})
    before = data.read_bytes()
    task = tmp_path / "task.json"
    task.write_text(json.dumps({"dataset": {"path": "data.jsonl", "train": "train.jsonl"}}))
    train = write_rows(tmp_path / "train.jsonl", {"question": "q"})
    for out in (data, train, task):
        assert main(["render", str(task), "-o", str(out)]) == 2
        assert "is also an input" in capfd.readouterr().err
    assert data.read_bytes() == train.read_bytes() == before


def test_a_killed_run_is_no_hindrance_to_the_next_of_the_same_process_number(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "data.jsonl", {"question": "q"})
    out = tmp_path / "out.jsonl"
    (tmp_path / f".out.jsonl.{os.getpid()}.part").touch()  # containers number every run alike
    assert main(["render", str(data), "-o", str(out)]) == 0


def test_without_nameless_files_the_output_appears_whole_and_alone_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out = write_rows(tmp_path / "data.jsonl", {"question": "q"}), tmp_path / "out.jsonl"
    with monkeypatch.context() as system:
        system.delattr(os, "O_TMPFILE", raising=False)
        assert main(["render", str(data), "-o", str(out)]) == 0
        whole = out.read_bytes()
        assert whole == b'{"id":0,"messages":[{"role":"user","content":"q"}]}\n'
        write_rows(data, {"question": "q"}, {"question": ""})
        assert main(["render", str(data), "-o", str(out), "--strict"]) == 1
    assert out.read_bytes() == whole
    assert sorted(os.listdir(tmp_path)) == ["data.jsonl", "out.jsonl"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "data.jsonl", {"question": "q"})
    (tmp_path / "real").mkdir()
    (tmp_path / "link.jsonl").symlink_to("real/out.jsonl")
    assert main(["render", str(data), "-o", str(tmp_path / "link.jsonl")]) == 0
    assert (tmp_path / "link.jsonl").is_symlink()
    assert (tmp_path / "real" / "out.jsonl").read_bytes().startswith(b'{"id":0,')


def test_the_input_is_never_the_output(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = write_rows(tmp_path / "data.jsonl", {"question": "q"})
    before = data.read_bytes()
    (tmp_path / "link.jsonl").symlink_to("data.jsonl")
    for out in (data, tmp_path / "link.jsonl"):
        assert main(["render", str(data), "-o", str(out)]) == 2
    assert "is also an input" in capfd.readouterr().err
    assert data.read_bytes() == before


@pytest.mark.parametrize("strict", [[], ["--strict"]])
def test_a_dataset_that_cannot_be_read_at_all_is_a_usage_error(
    strict: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data.csv"
    data.write_text("question,question\nq,q\n")
    assert main(["render", str(data), *strict]) == 2
    assert "data.csv:1: MM015 the header names 'question' twice; " in capfd.readouterr().err


def test_a_target_that_is_no_regular_file_is_written_directly(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "data.jsonl", {"question": "q"})
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert main(["render", str(data), "-o", str(fifo)]) == 0
        assert os.read(reader, 1000) == b'{"id":0,"messages":[{"role":"user","content":"q"}]}\n'
    finally:
        os.close(reader)
    assert sorted(os.listdir(tmp_path)) == ["data.jsonl", "fifo"]
    assert main(["render", str(data), "-o", os.devnull]) == 0
    assert not Path(os.devnull).is_file()


def test_a_reader_that_leaves_ends_the_run_in_silence(command_environment: dict[str, str], tour: Path) -> None:
    with started(command_environment, "render", tour / "tour.jsonl") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(9) == b'{"id":"to'
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(20) == 0


@pytest.mark.parametrize("closed", [True, False])
def test_reports_that_nobody_takes_change_neither_output_nor_exit_code(
    closed: bool, tmp_path: Path, process: Any, command_environment: dict[str, str]
) -> None:
    data = write_rows(tmp_path / "data.jsonl", *[{"question": ""}] * 2000, {"question": "q"})
    out = tmp_path / "out.jsonl"
    if closed:
        with started(command_environment, "render", data, "-o", out) as running:
            assert running.stderr is not None
            running.stderr.read(9)
            running.stderr.close()
            code = running.wait(20)
    elif os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            code = process("render", data, "-o", out, stderr=full).returncode
    else:
        pytest.skip("Linux")
    assert code == 1
    assert out.read_bytes().count(b"\n") == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux")
def test_a_version_that_cannot_be_written_is_one_line(process: Any) -> None:
    with open("/dev/full", "wb") as full:
        done = process("--version", stdout=full)
    assert (done.returncode, done.stderr) == (2, b"mmprompt: No space left on device: output\n")


def test_an_interrupted_run_exits_with_130(interrupted_environment: dict[str, str]) -> None:
    with started(interrupted_environment, "render", "-", stdin=subprocess.PIPE) as process:
        process.stdin.write(b'{"question": "q"}\n{"question": null}\n')
        process.stdin.flush()
        assert process.stderr.readline().startswith(b"-:2: ")  # so all that a run imports is there, and it waits
        stderr = ended_by(process, signal.SIGINT)
    assert exit_code(process) == 130
    assert re.fullmatch(rb"mmprompt: interrupted\b.*\n", stderr)


# ---- standard input


def test_stdin_has_no_root_and_paths_are_refused(command: Any) -> None:
    done = command("render", "-", stdin=b'{"image": "media/coffee.jpg", "question": "q"}\n{"question": "text"}\n')
    assert done.returncode == 1
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1]
    assert done.stderr.startswith(b"-:1: MM206 no media root is set")
    assert b"--media-root" in done.stderr


def test_stdin_with_a_root_gives_what_the_file_gives(command: Any, process: Any, tour: Path) -> None:
    rows = (tour / "tour.jsonl").read_bytes()
    done = process("render", "-", "--media-root", tour, stdin=rows)
    assert (done.returncode, closing(done.stderr.decode()).left_out) == (0, 0)
    assert done.stdout == command("render", tour / "tour.jsonl").stdout


def test_a_limit_reads_no_further(command_environment: dict[str, str]) -> None:
    with started(command_environment, "render", "-", "--limit", 2, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b'{"id": "a", "question": null}\n{"id": "b", "question": "q"}\n')
        process.stdin.flush()  # and left open: whoever asks for a third row waits for ever
        assert process.wait(20) == 1
        stdout, _ = process.communicate()
    assert [json.loads(line)["id"] for line in stdout.splitlines()] == ["b"]


# ---- what is written


@pytest.mark.parametrize("emit", ["messages", "prompt"])
def test_several_workers_write_the_same_bytes(command: Any, tour: Path, emit: str) -> None:
    one = command("render", tour / "tour.jsonl", "--emit", emit)
    four = command("render", tour / "tour.jsonl", "--emit", emit, "--workers", 4)
    assert one.stdout.count(b"\n") == 25
    assert (one.returncode, one.stdout, one.stderr) == (four.returncode, four.stdout, four.stderr)


def rendered(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[Any], str]:
    """Return the exit code, the lines, and what is told before the last line."""
    code = main(["render", *map(str, arguments)])
    out, err = capfd.readouterr()
    return code, [json.loads(line) for line in out.splitlines()], closing(err).told


def test_emit_puts_its_key_in_the_place_of_messages(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = write_rows(folder / "data.jsonl", {"id": 1, "image": "media/coffee.jpg", "question": "你好", "answer": "A"})
    task = folder / "task.json"
    template = {"round": [{"role": "HUMAN", "prompt": "Q: {question}"}, {"role": "BOT", "prompt": "A: {answer}"}]}
    meta = {
        "round": [{"role": "HUMAN", "begin": "<h>", "end": "</h>"}, {"role": "BOT", "begin": "<b>", "generate": True}]
    }
    config = {
        "dataset": "data.jsonl",
        "reader_cfg": {"output_column": "answer"},
        "infer_cfg": {"prompt_template": {"template": template}},
        "model": {"meta_template": meta},
    }
    task.write_text(json.dumps(config), encoding="utf-8")
    assert rendered(capfd, task, "--emit", "prompt")[1] == [
        {"id": 1, "prompt": [{"role": "HUMAN", "prompt": "Q: 你好"}, {"role": "BOT", "prompt": "A: "}], "answer": "A"}
    ]
    assert rendered(capfd, task, "--emit", "string")[1] == [{"id": 1, "string": "<h>Q: 你好</h><b>", "answer": "A"}]
    assert rendered(capfd, task)[1] == [
        {"id": 1, "messages": [{"role": "user", "content": "<h>Q: 你好</h>"}], "answer": "A"}
    ]
    assert rendered(capfd, data, "--emit", "prompt")[1][0]["prompt"] == [
        {
            "role": "HUMAN",
            "prompt": [
                {"type": "image_url", "image_url": {"url": "media/coffee.jpg"}},
                {"type": "text", "text": "你好"},
            ],
        }
    ]


def test_labels_give_an_object_in_every_form(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_rows(tmp_path / "data.jsonl", {"question": "q", "answer": "A"})
    config = {
        "dataset": {"path": "data.jsonl"},
        "infer_cfg": {
            "prompt_template": {"template": {"A": "{question} A", "B": "{question} B"}},
            "inferencer": {"type": "PPLInferencer"},
        },
    }
    task = tmp_path / "task.json"
    task.write_text(json.dumps(config))
    texts = {"A": "q A", "B": "q B"}
    assert rendered(capfd, task, "--emit", "prompt")[1] == [{"id": 0, "prompt": texts, "answer": "A"}]
    assert rendered(capfd, task, "--emit", "string")[1] == [{"id": 0, "string": texts, "answer": "A"}]
    wanted = {label: [{"role": "user", "content": text}] for label, text in texts.items()}
    assert rendered(capfd, task)[1] == [{"id": 0, "messages": wanted, "answer": "A"}]


def test_media_without_a_placeholder_make_no_string(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = write_rows(folder / "data.jsonl", {"image": "media/coffee.jpg", "question": "q"}, {"question": "text"})
    code, records, err = rendered(capfd, data, "--emit", "string")
    assert (code, [r["string"] for r in records]) == (1, ["text"])
    assert re.match(r".*data\.jsonl:1: MM605 .*image.*; .*placeholder", err)


SOURCES = {
    "path": "media/杯子 #1.jpg",
    "file": "file://media/coffee.jpg",
    "data": f"data:image/jpeg;base64,{PNG}",
    "base64": PNG,
    "http": "http://example.com/a.jpg?x=1",
}


def inline(path: Path) -> str:
    return f"data:image/jpeg;base64,{base64.b64encode(path.read_bytes()).decode()}"


@pytest.mark.parametrize("media", ["inline", "file", "url", "keep"])
def test_the_table_of_media_modes(media: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = write_rows(folder / "data.jsonl", *[{"id": k, "image": v, "question": "q"} for k, v in SOURCES.items()])
    code, records, err = rendered(capfd, data, "--media", media)
    urls = {r["id"]: r["messages"][0]["content"][0]["image_url"]["url"] for r in records}
    root = folder.resolve().as_uri()
    wanted = {
        "inline": {
            "path": inline(folder / "media/杯子 #1.jpg"),
            "file": inline(folder / "media/coffee.jpg"),
            "data": f"data:image/png;base64,{PNG}",
            "base64": f"data:image/png;base64,{PNG}",
            "http": SOURCES["http"],
        },
        "file": {
            "path": f"{root}/media/%E6%9D%AF%E5%AD%90%20%231.jpg",
            "file": f"{root}/media/coffee.jpg",
            "http": SOURCES["http"],
        },
        "url": {"http": SOURCES["http"]},
        "keep": SOURCES,
    }[media]
    assert urls == wanted
    refused = [k for k in SOURCES if k not in wanted]
    assert code == (1 if refused else 0)
    assert [line.rpartition("sample ")[2].rstrip(")") for line in err.splitlines()[: len(refused)]] == refused


@pytest.mark.parametrize("media", ["inline", "file", "url", "keep"])
def test_in_every_mode_a_path_passes_the_policy(media: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "media" / "notes.jpg").write_text("no picture")
    names = ["../../etc/passwd", "/etc/passwd", "file:///etc/passwd", "media/nowhere.jpg", "media/notes.jpg", "media"]
    data = write_rows(folder / "data.jsonl", *[{"image": name} for name in names])
    code, records, err = rendered(capfd, data, "--media", media)
    assert (code, records) == (1, [])
    reasons = ["outside", "outside", "outside", "no such file", "plain text", "directory"]
    for line, reason in zip(err.splitlines(), reasons, strict=False):
        assert reason in line


def test_a_further_root_is_allowed_by_name(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "rows").mkdir()
    data = write_rows(
        folder / "rows" / "data.jsonl", {"image": "coffee.jpg"}, {"image": str(folder / "media/coffee.jpg")}
    )
    assert rendered(capfd, data)[0] == 1
    code, records, err = rendered(capfd, data, "--media-root", folder / "media")
    assert (code, len(records), err) == (0, 2, "")


def test_what_a_target_refuses_is_reported_and_left_out(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"id": 1, "image": "media/coffee.jpg", "question": "q"},
        {"id": 2, "video": "media/clip.mp4", "question": "q"},
        {"id": 3, "question": "q", "image": "media/spinner.gif"},
        {"id": 4, "image": "gs://bucket/a.jpg", "question": "q"},
        {"id": 5, "question": "q"},
    ]
    data = write_rows(folder / "data.jsonl", *rows)
    code, records, err = rendered(capfd, data, "--target", "openai")
    assert (code, [r["id"] for r in records]) == (1, [1, 5])
    lines = err.splitlines()
    assert len(lines) == 5  # with a note on each media column
    places = [("2: MM804", "video"), ("3: MM804", "image"), ("4: MM800", "image")]
    for line, (begin, column) in zip(lines, places, strict=False):
        assert f"data.jsonl:{begin} " in line
        assert ";" in line
        assert line.endswith(f" ({column}, sample {begin[0]})")


def test_ids_keep_their_json_type(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    written = ["1", '"1"', "1.5", "true", "123456789012345678901234567890", '"七"', '["a",1]', "-7"]
    data = write_rows(tmp_path / "data.jsonl", *[f'{{"id": {id_}, "question": "q"}}' for id_ in written])
    assert main(["render", str(data)]) == 0
    out = capfd.readouterr().out
    assert [line.partition('{"id":')[2].partition(',"messages"')[0] for line in out.splitlines()] == written


def test_ids_come_from_id_index_question_id_or_the_row_number(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": "x", "index": 5}, {"index": 6, "question_id": 7}, {"question_id": 8}, {}, {"id": None}, {"id": 0}]
    data = write_rows(tmp_path / "data.jsonl", *[{**row, "question": "q"} for row in rows])
    assert [r["id"] for r in rendered(capfd, data)[1]] == ["x", 6, 8, 3, 4, 0]


def test_answers_are_kept_exactly(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    written = [
        "123456789012345678901234567890", "NaN", "-Infinity", "-0.0", "1.0", "0.1", '"007"', '"NA"', '" x "', "null",
        "true", '{"b": [1, {"a": 98765432109876543210}], "a": NaN}', '"\\u0000\\u001b\\"\\\\"', '"中文"', "1e22", '""',
    ]  # fmt: skip
    data = write_rows(tmp_path / "data.jsonl", *[f'{{"question": "q", "answer": {a}}}' for a in written])
    assert main(["render", str(data)]) == 0
    lines = capfd.readouterr().out.splitlines()
    answers = [json.loads(line, parse_constant=pytest.fail)["answer"] for line in lines]
    assert [repr(a) for a in answers] == [repr(json.loads(a, parse_constant=str)) for a in written]


@pytest.mark.parametrize("emit", ["messages", "prompt"])
@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_an_id_that_is_no_number_is_an_error_of_its_row(
    name: str, emit: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = ['{"question": "q"}', f'{{"index": {name}, "question": "q"}}', '{"question": "q"}']
    data = write_rows(tmp_path / "data.jsonl", *rows)
    assert main(["render", str(data), "--emit", emit]) == 1
    out, err = capfd.readouterr()
    assert [json.loads(line, parse_constant=pytest.fail)["id"] for line in out.splitlines()] == [0, 2]
    assert "data.jsonl:2" in err
    assert f"the id is {name.replace('1e999', 'Infinity')}; give a text or a finite number" in err
    errors: list[Any] = []
    requests = mmprompt.load_task(str(data)).requests(on_error=errors.append)
    assert ([request.id for request in requests], len(errors)) == ([0, 2], 1)
    nested = write_rows(tmp_path / "nested.jsonl", f'{{"id": [{name}], "question": "q"}}')
    found = tmp_path / "errors.jsonl"
    assert main(["render", str(nested), "--errors", str(found)]) == 1
    assert capfd.readouterr().out == ""
    assert json.loads(found.read_text(), parse_constant=pytest.fail)["id"] == [name.replace("1e999", "Infinity")]


def test_a_row_without_an_answer_has_no_answer(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = write_rows(tmp_path / "data.jsonl", {"question": "q"})
    assert rendered(capfd, data)[1] == [{"id": 0, "messages": [{"role": "user", "content": "q"}]}]


# ---- what is reported


def test_a_repeated_id_is_rendered_and_reported_with_its_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ids = [1, "1", 2, 1, None, 4, 2]
    data = write_rows(tmp_path / "data.jsonl", *[{"id": id_, "question": "q"} for id_ in ids])
    code, records, err = rendered(capfd, data)
    assert (code, [r["id"] for r in records]) == (1, [1, "1", 2, 1, 4, 4, 2])
    lines = err.splitlines()
    assert [line.partition("data.jsonl:")[2].partition(":")[0].split()[0] for line in lines] == ["4", "6", "7"]
    assert all(f"line {first}" in line for line, first in zip(lines, [1, 5, 3], strict=True))


def test_terminal_escapes_and_line_breaks_of_the_data_reach_no_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b[2J\x1b]0;title\x07\rok\nall: fine\u202e\x9b31m"
    rows = [
        {"id": evil, "question": None},
        {"id": 2, "image": evil + ".jpg"},
        {"id": 3, evil: 1},
        {"id": 4, "content": f"<AIS_TEXT_START>{evil}<AIS_IMAGE_START>"},
        {"id": 5, "image": f"ftp://{evil}"},
    ]
    data = write_rows(tmp_path / "data.jsonl", *rows)
    code, records, err = rendered(capfd, data)
    assert (code, records) == (1, [])
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", err)
    assert len(err.splitlines()) == len(rows) + 1  # and a note
    assert "\\x1b[2J" in err


def test_ids_and_columns_of_any_length_are_told_in_short(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    long = "x" * 300_000
    part = {"type": long, "text": "a"}
    files = {
        "rows.jsonl": [
            {"id": long, "image": "none.jpg"},
            {"id": {long: [long]}, "image": "none.jpg"},
            {"image_" + "1" * 300_000: "none.jpg"},
            {long: "a"},
            {f"column {number}": "a" for number in range(20_000)},
        ],
        "chat.jsonl": [{"messages": [{"role": "user", "content": [part]}]}],
        "first.csv": [f"image,{long}", "none.jpg,a"],
        "media.jsonl": [{"question": "q", **{f"{number}{long[:90]}": "a.jpg" for number in range(200)}}],
    }
    for name, rows in files.items():
        err = rendered(capfd, write_rows(tmp_path / name, *rows))[2]
        assert len(err.splitlines()) < 30, name
        assert max(map(len, err.splitlines())) < 3000, name


def test_a_cell_that_python_would_warn_of_prints_nothing(process: Any, tmp_path: Path) -> None:
    cells = [r"['\d.jpg',]", "['a.jpg', 0x1for x in]", "['\\\x1b.jpg',]", r"['\400.jpg',]"]
    seen = subprocess.run(
        [sys.executable, "-W", "always", "-c", f"import ast; ast.literal_eval({cells[0]!r})"],
        capture_output=True,
        check=True,
    )
    assert b"invalid escape sequence" in seen.stderr
    rows = "".join(f'{number},"{cell}"\n' for number, cell in enumerate(cells))
    (tmp_path / "data.csv").write_text("id,image\n" + rows)
    done = process("render", "data.csv", cwd=tmp_path)
    assert [line.partition(":")[0] for line in done.stderr.decode().splitlines()] == ["data.csv"] * 4 + ["mmprompt"]


def test_a_task_key_cannot_write_to_the_terminal(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    task = tmp_path / "task.json"
    task.write_text(json.dumps({"dataset": {"rows": []}, "infer_cfg": {"\x1b[2J\n": 1}}))
    assert main(["render", str(task)]) == 2
    err = capfd.readouterr().err
    assert "\x1b" not in err
    assert err.count("\n") == 1


def test_a_fault_is_told_at_the_column_that_names_the_medium(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"id": "a.jpg", "question": "What is in a.jpg?", "image": "a.jpg"},
        {
            "id": "a.jpg-2",
            "question": "a.jpg?",
            "content": "<AIS_TEXT_START>a.jpg<AIS_CONTENT_TAG><AIS_IMAGE_START>a.jpg",
        },
        {"id": "a.jpg-3", "images": ["https://example.com/b.jpg", "a.jpg"], "question": "q"},
    ]
    data = write_rows(tmp_path / "data.jsonl", *rows)
    lines = rendered(capfd, data)[2].splitlines()
    places = [line.rpartition(" (")[2].partition(", sample")[0] for line in lines[:3]]
    offset = rows[1]["content"].rindex("a.jpg")  # type: ignore[attr-defined]
    assert places == ["image", f"content @{offset}", "images"]


# ---- the host's locale and terminal


@pytest.mark.parametrize(
    ("locale", "dataset"),
    [
        ({"LC_ALL": "C"}, "tour.csv"),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "tour.json"),  # no file name beyond ASCII
    ],
)
def test_files_are_utf8_whatever_the_locale(
    locale: dict[str, str], dataset: str, command: Any, process: Any, tour: Path, tmp_path: Path
) -> None:
    environment = {**locale, "PYTHONIOENCODING": "ascii"}
    plain = command("render", dataset, cwd=tour)
    there = process("render", dataset, cwd=tour, env=environment)
    assert (there.returncode, closing(there.stderr.decode()).told) == (0, "")
    assert there.stdout == plain.stdout
    data = write_rows(tmp_path / "data.jsonl", {"id": "问题", "问": "q"})
    failed = process("render", data, env=environment)
    assert failed.returncode == 1
    assert b"\\u95ee\\u9898" in failed.stderr
    assert b"Traceback" not in failed.stderr


def on_terminal(environment: dict[str, str], *arguments: object, code: int = 0) -> bytes:
    """Return what the command writes to a terminal that is its standard error."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    shown = b""
    with started(environment, *arguments, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        while select.select([ours], [], [], 20)[0]:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # Linux: the other end is closed
                break
            if not piece:
                break
            shown += piece
        os.close(ours)
        assert process.wait(20) == code
    return shown


def test_a_progress_bar_shows_on_a_terminal_only(command_environment: dict[str, str], command: Any, tour: Path) -> None:
    assert re.search(rb"\b9 rows", on_terminal(command_environment, "render", tour / "tour_columns.jsonl"))
    assert b"rows/s" not in command("render", tour / "tour_columns.jsonl").stderr


def test_what_is_told_stands_on_a_line_of_its_own_beside_the_progress_bar(
    tmp_path: Path, command_environment: dict[str, str]
) -> None:
    data = write_rows(tmp_path / "data.jsonl", *[{"question": "q"}] * 3, {"question": ""})
    text = on_terminal(command_environment, "render", data, code=1)
    before, _, _ = text.partition(str(data).encode() + b":4: ")
    assert b"rows" in before  # the bar was there
    assert re.search(rb"\r *\r$", before)  # and was wiped off


# ---- tasks and datasets


def test_a_task_takes_another_dataset(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_rows(folder / "own.jsonl", {"question": "own"})
    other = folder / "other.txt"
    other.write_text("id,question\n7,other\n")
    task = folder / "task.yaml"
    task.write_text(
        "dataset: own.jsonl\ninfer_cfg: {prompt_template: {type: PromptTemplate, template: 'Q {question}'}}\n"
    )
    assert rendered(capfd, task)[1][0]["messages"][0]["content"] == "Q own"
    record = rendered(capfd, task, "--dataset", other, "--format", "csv")[1][0]
    assert (record["id"], record["messages"][0]["content"]) == ("7", "Q other")


def test_a_task_with_another_dataset_has_no_examples_of_its_own(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = write_rows(folder / "own.jsonl", {"question": "own", "answer": "a"})
    task = folder / "task.yaml"
    task.write_text(
        "dataset: {path: own.jsonl, train: own.jsonl}\n"
        "infer_cfg: {ice_template: {type: PromptTemplate, template: 'Q {question} </E>', ice_token: </E>},"
        " retriever: {type: FixKRetriever, fix_id_list: [0]}}\n"
    )
    assert rendered(capfd, task)[0] == 0
    assert main(["render", str(task), "--dataset", str(data)]) == 2
    assert "needs examples; give dataset.train, their file (--train FILE)" in capfd.readouterr().err
    assert rendered(capfd, task, "--dataset", data, "--train", data)[0] == 0


def test_a_column_is_mapped_to_its_modality(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = write_rows(folder / "data.jsonl", {"question": "q", "photo": "media/coffee.jpg"})
    assert rendered(capfd, data)[1][0]["messages"][0]["content"] == "q"
    content = rendered(capfd, data, "--map", "photo=image")[1][0]["messages"][0]["content"]
    assert [part["type"] for part in content] == ["image_url", "text"]


@pytest.mark.parametrize(
    ("row", "column", "said"),
    [
        ({"question": "q"}, "question", "although --map asks"),
        ({"content": "q", "photo": "media/coffee.jpg"}, "photo", "leave out --map: only 'content' is sent"),
    ],
)
def test_a_mapped_column_that_sends_nothing_is_noted(
    row: dict[str, str], column: str, said: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, _, err = rendered(capfd, write_rows(folder / "data.jsonl", row, row), "--map", f"{column}=image")
    assert code == 0
    assert err.startswith(f"note: MM605 all 2 rows: no media are sent from '{column}', although --map asks for them; ")
    assert said in err.splitlines()[0]


@pytest.mark.parametrize(
    ("column", "code", "said"),
    [
        ("Photo", 2, "the first row has no column 'Photo', which --map names; did you mean 'photo'?"),
        ("scene", 1, "no row has the column 'scene', which --map names; name a media column of the rows (known: "),
    ],
)
def test_a_mapped_column_that_no_row_has_is_an_error(
    column: str, code: int, said: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = write_rows(folder / "data.jsonl", {"question": "q", "photo": "media/coffee.jpg"})
    assert main(["render", str(data), "--map", f"{column}=image"]) == code
    assert said in capfd.readouterr().err


def test_a_format_can_be_forced(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data.txt"
    data.write_text("question\nWhat?\n")
    assert rendered(capfd, data, "--format", "csv")[1][0]["messages"][0]["content"] == "What?"


@pytest.mark.parametrize(("name", "text"), [("a.jsonl", ""), ("a.json", "[]"), ("a.csv", "id,question\n")])
def test_an_empty_dataset_is_no_error_but_noted(
    name: str, text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(text)
    code, lines, err = rendered(capfd, tmp_path / name)
    assert (code, lines, err) == (0, [], "note: MM014 there is no row to render\n")


def test_a_fault_of_the_task_is_told_once_and_its_rows_are_counted(
    folder: Path, command: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = [{"image": "media/coffee.jpg", "question": "q"}] * 3 + [
        {"question": "q"},
        {"question": ""},
        {"question": ""},
    ]
    data = write_rows(folder / "data.jsonl", *rows)
    task = folder / "task.json"
    prompt = {
        "image": {"type": "image_url", "image_url": {"url": "{image}"}},
        "text": {"type": "text", "text": "{question}"},
    }
    template = {"round": [{"role": "HUMAN", "prompt_mm": prompt}]}
    infer = {"prompt_template": {"type": "MMPromptTemplate", "template": template}}
    task.write_text(json.dumps({"dataset": "data.jsonl", "infer_cfg": infer}))
    code, lines, err = rendered(capfd, task, "--emit", "string")
    assert (code, len(lines)) == (1, 1)
    assert err.count("give media_placeholder={'image': '…'}") == 2  # at its first row, and with the count
    assert "data.jsonl:1: MM605 the prompt holds image" in err
    assert re.search(r"… and 2 more rows have this error: MM\d{3} .*; give media_placeholder", err)
    assert all(f"data.jsonl:{line}: MM" in err for line in (5, 6))  # a fault of each row is told at each

    done = command("render", "-", stdin=data.read_bytes())
    assert done.returncode == 1
    assert done.stderr.count(b"no media root is set") == 2  # at its first row, and with the count
    assert re.search(b"and 2 more rows have this error: .*; name the folder .* --media-root DIR", done.stderr)


def test_columns_of_other_names_are_told_once_with_their_names(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = write_rows(tmp_path / "data.jsonl", *[{"prompt": "q", "img": "a.jpg"}] * 3)
    code, lines, err = rendered(capfd, data)
    assert (code, lines) == (1, [])
    assert err.count("(columns: prompt, img)") == 2
    assert re.search(
        "… and 2 more rows have this error: .*; name them with --map img=image and --map COLUMN=question", err
    )
    data = write_rows(tmp_path / "blank.jsonl", {"prompt": "q", "my photo": "a.jpg"})
    assert "name them with --map 'my photo=image' and" in rendered(capfd, data)[2]


@pytest.mark.parametrize(("mark", "hint"), [("|", "save the file with commas"), (" \t", "pass --format tsv")])
def test_a_header_that_is_one_column_is_noted(
    mark: str, hint: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data.csv"
    data.write_text(f"id{mark}question{mark}image\n1{mark}What, where?{mark}a.jpg\n")
    code, lines, err = rendered(capfd, data)
    assert (code, lines) == (1, [])
    assert f"{mark.strip(' ')!r} separates the names of the header: {hint}" in err.splitlines()[0]
    assert "quote cells" not in err
    [note] = [line for line in err.splitlines() if line.startswith("note:")]
    assert "data.csv:1: MM022 the header is one column" in note
    assert hint in note
    if hint == "pass --format tsv":
        assert rendered(capfd, data, "--format", "tsv", "--map", "question =image")[0] == 1  # its rows are read


def test_the_help_names_every_choice_of_an_option(capfd: pytest.CaptureFixture[str]) -> None:
    from mmprompt.media.policy import _PRESETS
    from mmprompt.media.reader import MODES
    from mmprompt.render.renderer import EMITS

    with pytest.raises(SystemExit):
        main(["render", "--help"])
    words = set(re.findall(r"\w+", capfd.readouterr().out))
    assert {*EMITS, *MODES, *_PRESETS} <= words
