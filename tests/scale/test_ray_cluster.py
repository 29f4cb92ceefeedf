"""Commands with ``--engine ray`` on a cluster of three nodes: outputs, dying rows, nodes and drivers."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from loopback import serving
from ray_cluster import ray_cluster
from shard_cases import HOOK, ROWS, SHARD, Answers, dataset, lines_of, told

pytest.importorskip("ray")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kills processes and reads /proc")


ENGINE = ("--engine", "ray", "--workers", 3, "--rows-per-shard", SHARD)


@pytest.fixture(scope="module")
def hooked(tmp_path_factory):
    """The environment of a process in which ``HOOK`` is set."""
    folder = tmp_path_factory.mktemp("hook")
    (folder / "sitecustomize.py").write_text(HOOK)
    return {"PYTHONPATH": str(folder)}


@pytest.fixture(scope="module")
def cluster(hooked):
    short = tempfile.TemporaryDirectory(prefix="mm", ignore_cleanup_errors=True)  # sockets lie in it
    with short as folder, ray_cluster(Path(folder), hooked) as running:
        yield running


@pytest.fixture(autouse=True)
def _joined(monkeypatch, cluster):
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def server():
    handler = type("Handler", (Answers,), {"third": threading.Event(), "lock": threading.Lock()})
    with serving(handler) as port:
        yield handler, f"http://127.0.0.1:{port}/v1"


def test_render_gives_what_the_plain_run_gives(command, tmp_path):
    data = dataset(tmp_path)
    words = ("render", data, "--errors")
    plain = command(*words, tmp_path / "plain.errors", "-o", tmp_path / "plain.jsonl")
    ray = command(*words, tmp_path / "ray.errors", "-o", tmp_path / "ray.jsonl", *ENGINE)
    assert plain.returncode == ray.returncode == 1
    assert (tmp_path / "ray.jsonl").read_bytes() == (tmp_path / "plain.jsonl").read_bytes()
    assert (tmp_path / "ray.errors").read_bytes() == (tmp_path / "plain.errors").read_bytes()
    assert told(ray) == told(plain)
    assert ray.stdout == b""
    assert not (tmp_path / "ray.jsonl.shards").exists()


def test_check_gives_what_the_plain_check_gives(command, tmp_path):
    words = ("check", dataset(tmp_path), "--output-format", "json")
    plain, ray = command(*words), command(*words, *ENGINE)
    assert plain.returncode == ray.returncode == 1
    assert ray.stdout == plain.stdout
    assert ray.stderr == plain.stderr


def test_run_gives_the_journal_of_the_plain_run_and_asks_no_more_at_once(command, tmp_path, server):
    handler, url = server
    handler.seconds = 0.01
    data = dataset(tmp_path)
    words = ("run", data, "--base-url", url, "--model", "m", "--concurrency", 6)
    plain = command(*words, "-o", tmp_path / "plain.jsonl")
    handler.most = 0
    ray = command(*words, "-o", tmp_path / "ray.jsonl", *ENGINE)
    assert plain.returncode == ray.returncode == 1
    assert lines_of(tmp_path / "ray.jsonl") == lines_of(tmp_path / "plain.jsonl")
    assert told(ray) == told(plain)
    assert ray.stdout.replace(b"ray.jsonl", b"plain.jsonl") == plain.stdout
    assert 1 < handler.most <= 6
    asked = handler.asked
    again = command(*words, "-o", tmp_path / "ray.jsonl", *ENGINE)
    assert handler.asked == asked  # all of them stand in the journal
    assert b"of them before this run" in again.stderr
    assert lines_of(tmp_path / "ray.jsonl") == lines_of(tmp_path / "plain.jsonl")


def test_two_rows_that_end_their_workers_are_named_and_all_others_are_there(command, tmp_path):
    data = dataset(tmp_path, n37="poison.png", n150="poison.png")
    plain = command("render", data, "-o", tmp_path / "plain.jsonl")  # this process has no hook
    assert plain.returncode == 1
    errors = tmp_path / "errors.jsonl"
    ray = command("render", data, "-o", tmp_path / "ray.jsonl", "--errors", errors, *ENGINE)
    assert ray.returncode == 1
    found = [json.loads(line) for line in errors.read_text().splitlines()]
    assert [(f["row"], f["line"]) for f in found if f["code"] == "MM902"] == [(37, 38), (150, 151)]
    wanted = [
        line
        for line in (tmp_path / "plain.jsonl").read_text().splitlines()
        if json.loads(line)["id"] not in ("r37", "r150")
    ]
    assert (tmp_path / "ray.jsonl").read_text().splitlines() == wanted


def test_a_killed_driver_is_gone_on_with_and_no_finished_shard_is_done_again(command, tmp_path, cluster, hooked):
    data = dataset(tmp_path, every="slow.png")
    command("render", data, "-o", tmp_path / "plain.jsonl")
    words = ["render", str(data), "-o", str(tmp_path / "ray.jsonl"), *map(str, ENGINE)]
    folder = tmp_path / "ray.jsonl.shards"
    done = {}
    for enough in (2, 4):
        with subprocess.Popen(
            [sys.executable, "-m", "mmprompt", *words], stderr=subprocess.PIPE, cwd=tmp_path
        ) as driver:
            try:
                deadline = time.monotonic() + 60
                while len(list(folder.glob("*.report"))) < enough and time.monotonic() < deadline:
                    time.sleep(0.02)
            finally:
                driver.send_signal(signal.SIGKILL)
        stands = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.report")}
        assert enough <= len(stands) < ROWS // SHARD
        assert done.items() <= stands.items()
        done = stands
    ray = command(*words)
    before = re.search(rb"going on: (\d+) of 8 shards were done before", ray.stderr)
    assert int(before[1]) >= len(done)
    assert (tmp_path / "ray.jsonl").read_bytes() == (tmp_path / "plain.jsonl").read_bytes()
    assert not folder.exists()


def test_a_node_killed_at_a_third_of_a_run_costs_no_row(command, tmp_path, server, cluster):
    handler, url = server
    handler.seconds = 0.05
    data = dataset(tmp_path)
    words = ("run", data, "--base-url", url, "--model", "m", "--concurrency", 3)
    killing = threading.Thread(target=lambda: handler.third.wait(100) and cluster.kill_node(1))
    killing.start()
    ray = command(*words, "-o", tmp_path / "ray.jsonl", *ENGINE)
    killing.join()
    assert handler.third.is_set()
    assert ray.returncode == 1
    plain = command(*words, "-o", tmp_path / "plain.jsonl")
    assert lines_of(tmp_path / "ray.jsonl") == lines_of(tmp_path / "plain.jsonl")
    assert told(ray) == told(plain)


def test_every_address_of_the_cluster_is_on_loopback(cluster):
    found = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout
    addresses = [line.split()[3] for line in found.splitlines() if re.search(r'"(raylet|gcs_server|ray::)', line)]
    assert len(addresses) >= 5
    assert not [a for a in addresses if not re.match(r"(\[::ffff:127\.|127\.|\[::1\])", a)]
