"""``mmprompt run --engine local``: the journal of the plain run, the server's bounds, deaths, stops and what stood before."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
from loopback import serving
from shard_cases import HOOK, ROWS, SHARD, Answers, dataset, lines_of, told

from mmprompt.errors import TaskError
from mmprompt.scale.local import run_local
from mmprompt.scale.ray_engine import run_ray


@pytest.fixture
def server():
    handler = type("Handler", (Answers,), {"third": threading.Event(), "lock": threading.Lock()})
    with serving(handler) as port:
        yield handler, f"http://127.0.0.1:{port}/v1"


def words(folder, url, *more):
    return ("run", folder / "data.jsonl", "--base-url", url, "--model", "m", *more)


ENGINE = ("--engine", "local", "--workers", 2, "--rows-per-shard", SHARD)


def test_the_journal_is_that_of_the_plain_run_and_the_server_is_asked_no_more_at_once(command, tmp_path, server):
    handler, url = server
    handler.seconds = 0.002
    dataset(tmp_path)
    run = words(tmp_path, url, "--concurrency", 5)
    plain = command(*run, "-o", tmp_path / "plain.jsonl")
    handler.most = 0
    local = command(*run, "-o", tmp_path / "local.jsonl", *ENGINE)
    assert plain.returncode == local.returncode == 1
    assert lines_of(tmp_path / "local.jsonl") == lines_of(tmp_path / "plain.jsonl")
    assert told(local) == told(plain)
    assert local.stdout.replace(b"local.jsonl", b"plain.jsonl") == plain.stdout
    assert 1 < handler.most <= 4  # two shards with two requests each
    assert not (tmp_path / "local.jsonl.shards").exists()
    asked = handler.asked
    again = command(*run, "-o", tmp_path / "local.jsonl", *ENGINE)
    assert f"{ROWS - 2} of them before this run".encode() in again.stderr
    assert handler.asked == asked
    assert lines_of(tmp_path / "local.jsonl") == lines_of(tmp_path / "plain.jsonl")


def test_rows_that_a_plain_run_answered_are_not_asked_again(command, tmp_path, server):
    handler, url = server
    dataset(tmp_path)
    run = words(tmp_path, url, "-o", tmp_path / "out.jsonl")
    command(*run, "--limit", 90)
    before, begin = handler.asked, (tmp_path / "out.jsonl").read_bytes()
    local = command(*run, *ENGINE)
    assert f"{before} of them before this run".encode() in local.stderr
    assert handler.asked == ROWS - 2
    assert (tmp_path / "out.jsonl").read_bytes().startswith(begin)  # what stood there stays as it was
    command(*words(tmp_path, url, "-o", tmp_path / "plain.jsonl"))
    assert lines_of(tmp_path / "out.jsonl") == lines_of(tmp_path / "plain.jsonl")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="ends a process by a signal")
def test_a_row_that_ends_its_processes_is_named_and_all_others_are_asked(command, tmp_path, server, monkeypatch):
    _, url = server
    dataset(tmp_path, n37="poison.png", n150="poison.png")
    run = words(tmp_path, url)
    command(*run, "-o", tmp_path / "plain.jsonl")  # this process has no hook
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(HOOK)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "hook"))
    errors = tmp_path / "errors.jsonl"
    local = command(*run, "-o", tmp_path / "local.jsonl", "--errors", errors, *ENGINE)
    assert local.returncode == 1
    found = [json.loads(line) for line in errors.read_text().splitlines()]
    assert [f["line"] for f in found if f["code"] == "MM902"] == [38, 151]
    others = [line for line in lines_of(tmp_path / "plain.jsonl") if json.loads(line)["id"] not in ("r37", "r150")]
    assert lines_of(tmp_path / "local.jsonl") == others


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
@pytest.mark.parametrize(  # Windows has no SIGKILL
    ("name", "times"),
    [
        ("SIGINT", 1),
        pytest.param("SIGINT", 2, marks=pytest.mark.slow),
        pytest.param("SIGKILL", 1, marks=pytest.mark.slow),
    ],
)
def test_a_stopped_run_is_gone_on_with_and_no_answer_is_lost(
    command, tmp_path, server, interrupted_environment, name, times
):
    handler, url = server
    handler.seconds = 0.02
    dataset(tmp_path)
    run = [str(word) for word in words(tmp_path, url, "--concurrency", 4, "-o", tmp_path / "out.jsonl", *ENGINE)]
    with subprocess.Popen(
        [sys.executable, "-m", "mmprompt", *run],
        stderr=subprocess.PIPE,
        env=interrupted_environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    ) as driver:
        try:
            assert handler.third.wait(60)
            handler.seconds = 0.5 if times == 1 else 10
            time.sleep(0.1)  # requests that take so long are in flight
            driver.send_signal(getattr(signal, name))
            if name == "SIGINT":
                assert b"finishing what is in flight; press ^C again" in driver.stderr.readline()
            if times == 2:
                driver.send_signal(getattr(signal, name))
            _, said = driver.communicate(timeout=30)
            in_flight = handler.flying
        finally:
            driver.kill()
    handler.seconds = 0.02
    time.sleep(0.2)  # requests in flight end
    assert (tmp_path / "out.jsonl.shards").exists() == (name == "SIGKILL")
    if name == "SIGINT":
        assert in_flight == (0 if times == 1 else 4)
        assert driver.returncode == 130
        answered = int(re.search(rb"interrupted; (\d+) of", said)[1])
        lines = map(json.loads, (tmp_path / "out.jsonl").read_bytes().splitlines())
        assert sum("prediction" in line for line in lines) == answered > 0  # a row that failed has a line too
        assert b"mmprompt: the same command goes on where this run stopped\n" in said
    command(*run)
    most = 0 if (name, times) == ("SIGINT", 1) else 8  # those that were in flight are asked again
    assert handler.asked <= ROWS - 2 + most
    command(*words(tmp_path, url, "-o", tmp_path / "plain.jsonl"))
    assert lines_of(tmp_path / "out.jsonl") == lines_of(tmp_path / "plain.jsonl")


def test_shards_share_the_requests_a_minute(command, tmp_path, server):
    handler, url = server
    dataset(tmp_path)
    began = time.monotonic()
    command(*words(tmp_path, url, "--limit", 40, "--rpm", 1800, "-o", tmp_path / "out.jsonl"), *ENGINE)
    assert handler.asked == 40
    assert time.monotonic() - began > 39 / 30


def test_results_of_a_batch_have_no_engine(command, tmp_path):
    dataset(tmp_path)
    (tmp_path / "results.jsonl").write_text("{}\n")
    refused = command("run", tmp_path / "data.jsonl", "--collect", tmp_path / "results.jsonl", *ENGINE)
    assert refused.returncode == 2
    assert b"leave out --engine" in refused.stderr


def test_where_ray_is_missing_the_error_says_what_to_install(command, tmp_path):
    try:
        import ray  # noqa: F401
    except ImportError:
        dataset(tmp_path)
        refused = command("render", tmp_path / "data.jsonl", "-o", tmp_path / "out.jsonl", "--engine", "ray")
        assert refused.returncode == 2
        assert b"--engine ray needs Ray; pip install 'mmprompt[ray]'" in refused.stderr
        assert not (tmp_path / "out.jsonl").exists()
    else:
        assert callable(run_ray)


@pytest.mark.parametrize(
    "more", [(), ("--group-by", "topic"), pytest.param(("--group-by", "answer"), marks=pytest.mark.slow)]
)
def test_the_first_row_of_a_later_shard_is_like_any_other(command, tmp_path, server, more):
    handler, url = server
    refused = re.compile(r"What is (4|5|8)\b")

    def answer(self):
        length = int(self.headers["content-length"])
        if not refused.search(self.rfile.peek(length).decode()):
            Answers.do_POST(self)
            return
        self.rfile.read(length)
        self.send_response(403)
        self.send_header("content-length", "0")
        self.end_headers()

    handler.do_POST = answer
    rows = [{"id": n, "question": f"What is {n}?", "answer": "red", "topic": n} for n in range(10)]
    del rows[4]["topic"], rows[4]["answer"]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = words(tmp_path, url, "--concurrency", 1, *more)
    plain = command(*run, "-o", tmp_path / "plain.jsonl")
    local = command(*run, "-o", tmp_path / "local.jsonl", "--engine", "local", "--rows-per-shard", 4)
    assert told(local) == told(plain)
    assert local.stdout.replace(b"local.jsonl", b"plain.jsonl") == plain.stdout
    assert lines_of(tmp_path / "local.jsonl") == lines_of(tmp_path / "plain.jsonl")
    assert local.returncode == plain.returncode == 1


def test_a_server_that_refuses_all_ends_the_run_after_the_errors_of_the_rows_before(command, tmp_path, server):
    handler, url = server

    def refuse(self):
        self.rfile.read(int(self.headers["content-length"]))
        type(self).asked += 1
        self.send_response(401)
        self.send_header("content-length", "0")
        self.end_headers()

    handler.do_POST = refuse
    dataset(tmp_path, n0="none.png", n1="none.png", n25="none.png")
    run = words(tmp_path, url, "--concurrency", 1)
    plain = command(*run, "-o", tmp_path / "plain.jsonl", "--errors", tmp_path / "plain.errors")
    asked = handler.asked
    local = command(*run, "-o", tmp_path / "local.jsonl", "--errors", tmp_path / "local.errors", *ENGINE)
    assert told(local) == told(plain)
    assert (tmp_path / "local.errors").read_bytes() == (tmp_path / "plain.errors").read_bytes()
    assert len(told(plain)) == 3
    assert local.returncode == plain.returncode == 2
    assert handler.asked - asked <= 4
    assert not (tmp_path / "local.jsonl.shards").exists()
    handler.do_POST = Answers.do_POST
    run = words(tmp_path, url)
    assert command(*run, "-o", tmp_path / "local.jsonl", *ENGINE).returncode == 1
    command(*run, "-o", tmp_path / "plain.jsonl")
    assert lines_of(tmp_path / "local.jsonl") == lines_of(tmp_path / "plain.jsonl")


def test_a_plain_run_after_an_engine_that_failed_leaves_nothing_to_ask(command, tmp_path, server, monkeypatch):
    handler, url = server
    answer = handler.do_POST

    def refuse_some(self):
        if b"What is 4?" not in self.rfile.peek(int(self.headers["content-length"])):
            answer(self)
            return
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(400)
        self.send_header("content-length", "0")
        self.end_headers()

    def failing(work, specs, workers):
        yield from run_local(work, list(specs)[:2], 1)
        raise TaskError("the cluster is gone")

    handler.do_POST = refuse_some
    rows = [{"id": n, "question": f"What is {n}?", "answer": "red"} for n in range(30)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = (*words(tmp_path, url, "-o", tmp_path / "out.jsonl"),)
    shards = ("--engine", "local", "--workers", 1, "--rows-per-shard", 10)
    with monkeypatch.context() as patch:
        patch.setattr("mmprompt.cli.engine_run.engine_named", lambda _: failing)
        assert command(*run, *shards).returncode == 2
    assert len(lines_of(tmp_path / "out.jsonl")) == 20
    handler.do_POST = answer
    assert command(*run).returncode == 0
    asked, lines = handler.asked, lines_of(tmp_path / "out.jsonl")
    assert command(*run, *shards).returncode == 0
    assert handler.asked == asked
    assert lines_of(tmp_path / "out.jsonl") == lines


def test_a_column_that_no_row_has_is_told_before_anything_is_asked(command, tmp_path, server):
    handler, url = server
    rows = dataset(tmp_path)
    rows.write_text("{torn\n" + rows.read_text())
    run = words(tmp_path, url, "--group-by", "topci")
    plain = command(*run, "-o", tmp_path / "plain.jsonl")
    local = command(*run, "-o", tmp_path / "local.jsonl", *ENGINE)
    assert told(local) == told(plain)
    assert len(told(plain)) == 2
    assert local.returncode == plain.returncode == 2
    assert handler.asked == 0
    assert not (tmp_path / "local.jsonl.shards").exists()
