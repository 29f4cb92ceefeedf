"""The journal: what of it counts, and that it survives kills, torn lines, a full disk and a second run."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from answering import Answering, answering, text_of
from time_taken import GENEROUS, wait_until

from mmprompt import TaskError, dataset_task, run_task
from mmprompt.run.journal import JournalLine, read_journal
from mmprompt.run.manifest import manifest_path, read_manifest

linux = pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")
posix = pytest.mark.skipif(os.name != "posix", reason="signals and locks are POSIX's")


def line(row: int, **more: Any) -> JournalLine:
    return JournalLine(**{"row": row, "id": f"q-{row}", "prediction": "x", **more})


def test_a_line_is_read_as_it_was_written() -> None:
    whole = JournalLine(
        3, 2**70, 1, None, 2, "ab", "the reply\n", None, None, ["x", 1.5, None], ("a", "b"),
        {"category": "c"}, {"total_tokens": 4}, 1.25, 2, "stop",
    )  # fmt: skip
    assert JournalLine.of(json.loads(whole.to_json())) == whole
    assert whole.to_json().endswith(b"\n")
    of_label = JournalLine(0, "a", None, "yes", perplexity=1.5)
    assert JournalLine.of(json.loads(of_label.to_json())) == of_label


def test_the_last_line_of_a_request_counts(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    lines = [
        line(0, error="MM901 busy", prediction=None), line(1, turn=0), line(1, turn=1), line(0, prediction="late"),
        line(2, repeat=0), line(2, repeat=1), line(1, turn=1, prediction="again"), line(0, id="other"),
        line(3, label="yes", prediction=None, perplexity=2.0), line(3, prediction="yes"),
    ]  # fmt: skip
    path.write_bytes(b"".join(each.to_json() for each in lines))
    assert list(read_journal(str(path))) == [lines[n] for n in (1, 3, 4, 5, 6, 7, 8, 9)]


def test_torn_lines_are_told_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    good, torn = line(0).to_json(), line(1).to_json()[:40]
    path.write_bytes(good + torn + b"\n" + line(2).to_json() + b"[1]\n{}\n\n" + b"\xff\n" + torn)
    numbers: list[int] = []
    assert [each.row for each in read_journal(str(path), numbers.append)] == [0, 2]
    assert numbers == [2, 4, 5, 6, 7]  # the last one may still be written


@pytest.mark.parametrize(
    "odd",
    [
        {"row": -1}, {"row": 10**400}, {"row": True}, {"row": None}, {"turn": "0"}, {"repeat": 1.5}, {"attempts": -1},
        {"seconds": float("nan")}, {"perplexity": float("inf")}, {"choices": [5]}, {"choices": {"a": "b"}}, {"groups": 7},
        {"usage": []}, {"gone": 1}, {"prediction": ["x"]}, {"finish_reason": 5}, {"groups": [[[]]]},
    ],
)  # fmt: skip
def test_a_line_with_an_odd_value_is_torn(tmp_path: Path, odd: dict[str, Any]) -> None:
    path = tmp_path / "j.jsonl"
    record = {**json.loads(line(0).to_json()), **odd}
    path.write_text(json.dumps(record) + "\n" + line(1).to_json().decode())
    torn: list[int] = []
    assert [found.row for found in read_journal(str(path), torn.append)] == [1]
    assert torn == [1]


def test_a_line_may_leave_out_what_is_not_known(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text(json.dumps({"row": 0, "id": None, "prediction": "x", "choices": None}) + "\n")
    assert [*read_journal(str(path))] == [JournalLine(0, None, prediction="x")]


def test_another_file_is_no_journal(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": 1, "question": "?"}\n', encoding="utf-8")
    with pytest.raises(TaskError, match="not a journal"):
        list(read_journal(str(path)))


def test_memory_for_a_line_that_counts_is_small(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "j.jsonl"
    count = 8_000
    with path.open("wb") as file:
        for row in range(count):
            file.write(line(row, prediction="x" * 300).to_json())
    tracemalloc.start()
    for _ in read_journal(str(path)):
        most = tracemalloc.get_traced_memory()[1]
        break
    tracemalloc.stop()
    assert most / count < 200


# ---- a run and its journal


@pytest.fixture
def server() -> Iterator[Answering]:
    with answering(lambda body: text_of(body).upper()) as served:
        yield served


def rows(folder: Path, count: int) -> Path:
    path = folder / "rows.jsonl"
    text = [json.dumps({"id": f"q-{n}", "question": f"row {n}", "answer": f"ROW {n}"}) for n in range(count)]
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return path


def test_a_run_cuts_off_a_torn_end_and_asks_its_row_again(server: Answering, tmp_path: Path) -> None:
    data, out = rows(tmp_path, 6), tmp_path / "j.jsonl"
    run_task(data, "m", out, base_url=server.base_url, concurrency=1)
    whole = out.read_bytes()
    out.write_bytes(whole[:-20])
    report = run_task(data, "m", out, base_url=server.base_url)
    assert (report.kept, report.answered, report.torn) == (5, 6, 0)
    assert len(out.read_bytes().splitlines()) == 6

    lines = out.read_bytes().splitlines(keepends=True)
    out.write_bytes(b"".join([*lines[:2], lines[2][:30] + b"\n", *lines[3:]]))
    report = run_task(data, "m", out, base_url=server.base_url)
    assert (report.kept, report.answered, report.torn) == (5, 6, 1)
    assert sorted(each.row for each in read_journal(str(out))) == list(range(6))


def test_a_journal_without_its_manifest_is_refused(server: Answering, tmp_path: Path) -> None:
    data, out = rows(tmp_path, 2), tmp_path / "j.jsonl"
    run_task(data, "m", out, base_url=server.base_url)
    os.unlink(manifest_path(str(out)))
    before = out.read_bytes()
    with pytest.raises(TaskError, match="--overwrite"):
        run_task(data, "m", out, base_url=server.base_url)
    assert out.read_bytes() == before


def test_a_dataset_is_not_taken_for_a_journal(server: Answering, tmp_path: Path) -> None:
    data = rows(tmp_path, 2)
    before = data.read_bytes()
    for overwrite in (False, True):
        with pytest.raises(TaskError, match="is not a journal"):
            run_task(data, "m", data, base_url=server.base_url, overwrite=overwrite)
    assert data.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["rows.jsonl"]


def test_the_manifest_says_what_was_asked(server: Answering, tmp_path: Path) -> None:
    data, out = rows(tmp_path, 2), tmp_path / "j.jsonl"
    run_task(data, "m", out, base_url=server.base_url, options={"temperature": 0.5}, scorer="contains", limit=1)
    manifest = read_manifest(str(out))
    assert manifest["dataset"]["path"] == str(data)  # type: ignore[index, call-overload]
    assert {key: manifest[key] for key in ("model", "target", "options", "inferencer", "scorer", "limit")} == {
        "model": "m", "target": "vllm", "options": {"temperature": 0.5}, "inferencer": "GenInferencer",
        "scorer": "contains", "limit": 1,
    }  # fmt: skip


@posix
@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ({"map_columns": {"a": "question"}}, {"map_columns": {"b": "question"}}, '--map {"a": "question"}, now {"b": "question"}'),
        ({"map_columns": {"a": "question"}, "split": "x"}, {"map_columns": {"a": "question"}, "split": "y"}, "--split 'x', now 'y'"),
        ({"map_columns": {"a": "question"}, "split": "x"}, {"map_columns": {"a": "question"}}, "--split 'x', now unset"),
    ],
)  # fmt: skip
def test_a_run_does_not_go_on_with_rows_that_are_read_otherwise(
    server: Answering, tmp_path: Path, before: dict[str, Any], now: dict[str, Any], told: str
) -> None:
    data, out = tmp_path / "rows.jsonl", tmp_path / "j.jsonl"
    data.write_text("".join(f'{{"a": "a{n}", "b": "b{n}", "split": "{"xy"[n]}", "gold": "A{n}"}}\n' for n in range(2)))
    run_task(dataset_task(data, **before), "m", out, base_url=server.base_url)
    journal = out.read_bytes()
    with pytest.raises(TaskError, match=re.escape(told)) as error:
        run_task(dataset_task(data, **now), "m", out, base_url=server.base_url)
    assert error.value.hint == "write to another file with -o, or begin anew with --overwrite"
    assert out.read_bytes() == journal


def test_a_run_goes_on_with_answers_from_another_column(server: Answering, tmp_path: Path) -> None:
    data, out = tmp_path / "rows.jsonl", tmp_path / "j.jsonl"
    data.write_text('{"a": "a", "gold": "A"}\n')
    run_task(dataset_task(data, map_columns={"a": "question"}), "m", out, base_url=server.base_url)
    task = dataset_task(data, map_columns={"a": "question", "gold": "answer"})
    report = run_task(task, "m", out, base_url=server.base_url)
    assert (report.kept, len(server.bodies), [line.answer for line in read_journal(str(out))]) == (1, 1, ["A"])


def test_a_second_run_on_a_journal_is_refused(tmp_path: Path) -> None:
    data, out = rows(tmp_path, 4), tmp_path / "j.jsonl"
    came, go = threading.Event(), threading.Event()

    def reply(body: dict[str, Any]) -> str:
        came.set()
        go.wait(GENEROUS)
        return "x"

    with answering(reply) as server:
        first = threading.Thread(target=run_task, args=(data, "m", out), kwargs={"base_url": server.base_url})
        first.start()
        assert came.wait(GENEROUS)
        with pytest.raises(TaskError, match="another run writes to"):
            run_task(data, "m", out, base_url=server.base_url)
        go.set()
        first.join()
        assert run_task(data, "m", out, base_url=server.base_url).kept == 4
    assert not (tmp_path / "j.jsonl.lock").exists()


def test_a_line_that_does_not_fit_leaves_the_journal_whole(
    server: Answering, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fills up in the middle of a line: ``os.write`` takes a part of it, then fails."""
    data, out = rows(tmp_path, 3), tmp_path / "j.jsonl"
    real, left = os.write, [400]

    def write(descriptor: int, text: bytes) -> int:
        if not left[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = real(descriptor, text[: left[0]])
        left[0] -= taken
        return taken

    with monkeypatch.context() as full:
        full.setattr(os, "write", write)
        with pytest.raises(OSError, match="No space left") as failed:
            run_task(data, "m", out, base_url=server.base_url, concurrency=1)
    assert failed.value.filename == str(out)
    assert [each.prediction for each in read_journal(str(out))] == ["ROW 0"]
    assert out.read_bytes().endswith(b"\n")
    assert run_task(data, "m", out, base_url=server.base_url).kept == 1


def test_a_manifest_that_does_not_fit_is_named_and_leaves_no_part(
    server: Answering, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out = rows(tmp_path, 1), tmp_path / "j.jsonl"

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as failed:
        run_task(data, "m", out, base_url=server.base_url)
    assert failed.value.filename == manifest_path(str(out))
    assert sorted(os.listdir(tmp_path)) == ["j.jsonl", "rows.jsonl"]


def test_lines_that_do_not_reach_the_disk_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, out = rows(tmp_path, 3), tmp_path / "j.jsonl"
    real, calls, failed = os.fsync, [0], threading.Event()

    def once(descriptor: int) -> None:
        calls[0] += 1
        if calls[0] == 2:  # the first is of the manifest
            failed.set()
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(descriptor)

    def reply(body: dict[str, Any]) -> str:
        if "2" in text_of(body):
            assert failed.wait(GENEROUS)
        return "x"

    monkeypatch.setattr(os, "fsync", once)
    with answering(reply) as server, pytest.raises(OSError, match="Input/output error") as told:
        run_task(data, "m", out, base_url=server.base_url)
    assert told.value.filename == str(out)


@posix
@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_ends_what_is_in_flight_and_a_second_stops_at_once(
    times: int, tmp_path: Path, interrupted_environment: dict[str, str]
) -> None:
    data, out = rows(tmp_path, 200), tmp_path / "j.jsonl"
    go = threading.Event()

    def reply(body: dict[str, Any]) -> str:
        if text_of(body) not in ("row 0", "row 1"):
            go.wait(GENEROUS)
        return "x"

    with answering(reply) as server:
        words = ["run", data, "--base-url", server.base_url, "--model", "m", "-o", out, "--concurrency", 4]
        process = begin(words, interrupted_environment)
        assert wait_until(lambda: len(server.bodies) >= 6)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        told = process.stderr.readline()
        assert b"in flight" in told
        if times == 2:
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=GENEROUS)[1]
            go.set()
        else:
            go.set()
            said = process.communicate(timeout=GENEROUS)[1]
        assert len(server.bodies) == 6
    assert process.returncode == 130
    assert b"Traceback" not in said
    assert b"interrupted" in said
    assert len(list(read_journal(str(out)))) == (6 if times == 1 else 2)


def begin(words: list[Any], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    # a shell that started the tests in the background made them deaf to SIGINT, and the child would inherit that
    hear = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    command = [sys.executable, "-m", "mmprompt", *map(str, words)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **hear)


# ---- killed at random points


@contextmanager
def slow_server() -> Iterator[Answering]:
    """Replies after 5 to 15 ms, the same to the same request."""
    draw = random.Random(7)

    def reply(body: dict[str, Any]) -> str:
        time.sleep(draw.uniform(0.005, 0.015))
        return text_of(body).upper()

    with answering(reply) as server:
        yield server


def sorted_lines(path: Path) -> list[dict[str, Any]]:
    """The lines by row, without what differs between two runs."""
    lines = [json.loads(text) for text in path.read_bytes().splitlines()]
    for each in lines:
        for name in ("seconds", "attempts", "usage"):
            del each[name]
    return sorted(lines, key=lambda each: each["row"])


@posix
@pytest.mark.parametrize(
    ("kills", "count"), [pytest.param(2, 80, id="some"), pytest.param(20, 1000, id="many", marks=pytest.mark.slow)]
)
def test_a_run_that_is_killed_again_and_again_equals_an_undisturbed_one(
    kills: int, count: int, tmp_path: Path, interrupted_environment: dict[str, str]
) -> None:
    """After each kill a piece of a line is put at the end of the journal, as a machine that stops would leave it."""
    draw = random.Random(20)
    data, out = rows(tmp_path, count), tmp_path / "j.jsonl"
    killed = 0
    with slow_server() as server:
        words = ["run", data, "--base-url", server.base_url, "--model", "m", "-o", out, "--concurrency", 8]
        for number in range(kills):
            aim = draw.randint(1, 2 * count // kills) + len(server.bodies)
            process = begin(words, interrupted_environment)
            wait_until(lambda least=aim, p=process: len(server.bodies) >= least or p.poll() is not None)
            time.sleep(draw.uniform(0, 0.02))
            process.kill()
            process.communicate(timeout=GENEROUS)
            killed += process.returncode == -signal.SIGKILL
            if number % 2 == 0 and out.exists():
                piece = line(draw.randrange(count), prediction="torn").to_json()
                with out.open("ab") as file:
                    file.write(piece[: draw.randint(1, len(piece) - 1)])
        process = begin(words, interrupted_environment)
        said = process.communicate(timeout=60)[1]
        assert process.returncode == 0, said
        run_task(data, "m", tmp_path / "calm.jsonl", base_url=server.base_url)
    assert killed >= kills // 2
    assert sorted_lines(out) == sorted_lines(tmp_path / "calm.jsonl")
    assert [each["row"] for each in sorted_lines(out)] == list(range(count))
