"""Shards as tasks of Ray: a local cluster on loopback, workers that die, errors, and a cluster of three nodes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import scale_work
from time_taken import GENEROUS

from mmprompt.scale.ray_engine import run_ray

pytest.importorskip("ray")

TESTS = str(Path(scale_work.__file__).parent)
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kills processes and reads /proc")


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", TESTS)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


def specs(folder, count, **about):
    return [{"folder": str(folder), "number": number, **about.get(f"n{number}", {})} for number in range(count)]


def listeners():
    """Return address and process of each listening TCP socket of Ray's processes on this machine."""
    found = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout
    return [line.split()[3] for line in found.splitlines() if re.search(r'"(raylet|gcs_server|ray::|python)', line)]


def ray_processes(folder):
    """Return the processes whose command line names a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if folder.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


def test_a_local_cluster_listens_on_loopback_prints_nothing_and_leaves_nothing(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    reports, addresses, folders = [], [], set()
    before = set(Path("/tmp").glob("mmprompt-*"))
    about = {"n1": {"deaths": 2}, "n3": {"seconds": 1}}
    for report in run_ray(scale_work.noted, specs(tmp_path, 6, **about), 2):
        reports.append(report)
        addresses = addresses or listeners()
        folders |= {path for path in Path("/tmp").glob("mmprompt-*/driver.log") if path.parent not in before}
    assert sorted(report["number"] for report in reports) == list(range(6))
    assert {report["folder"] for report in reports} == {str(tmp_path)}
    assert len((tmp_path / "1.tries").read_text()) == 3  # the worker died twice
    assert all(len((tmp_path / f"{number}.tries").read_text()) == 1 for number in (0, 2, 3, 4, 5))
    assert addresses
    assert not [a for a in addresses if not re.match(r"(\[::ffff:127\.|127\.|\[::1\])", a)]
    assert capfd.readouterr() == ("", "")
    assert not list((tmp_path / "home").iterdir())  # Ray would keep a token there
    assert len(folders) == 1
    folder = folders.pop().parent
    assert not folder.exists()
    assert not ray_processes(str(folder))


STRANGER = """
import sys
import ray
from ray._raylet import GcsClient
from ray.exceptions import AuthenticationError
try:
    GcsClient(address=sys.argv[1]).get_all_node_info(timeout=20)
    print("let in")
except AuthenticationError:
    print("refused")
for name in sys.argv[2:]:
    ray.init(sys.argv[1], log_to_driver=False, _node_ip_address="127.0.0.1")
    job = ray.remote(num_cpus=0)(lambda: open(name, "w").close())
    ray.get(job.remote(), timeout=20)
"""
"""A program that looks at a cluster, and runs a job on it that makes the file that its second argument names."""


def head_of(before):
    """Return the process and the address of the head of the cluster that was started since, once it listens."""
    deadline = time.monotonic() + GENEROUS
    while time.monotonic() < deadline:
        found = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout
        for address, process in re.findall(r"(\S+:\d+) +\S+ +users:\(\(\"gcs_server\",pid=(\d+)", found):
            if process not in before:
                return process, f"127.0.0.1:{address.rpartition(':')[2]}"
        time.sleep(0.05)
    raise AssertionError("no head listens")


def heads():
    found = subprocess.run(["pgrep", "gcs_server"], capture_output=True, text=True, check=False).stdout
    return found.split()


@pytest.mark.parametrize(
    "environment",
    [
        {"RAY_ADDRESS": "Local"},
        {"RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN_PATH": "TOKEN"},
        {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "known", "RAY_ENABLE_K8S_TOKEN_AUTH": "1"},
    ],
    ids=["local", "disabled", "known"],
)
def test_our_own_cluster_refuses_who_has_not_its_token_whatever_the_environment_says(
    environment, tmp_path, monkeypatch
):
    home, known = tmp_path / "home", tmp_path / "token"
    home.mkdir()
    known.write_text("known")
    monkeypatch.setenv("HOME", str(home))
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_ENABLE_K8S_TOKEN_AUTH"):
        monkeypatch.delenv(name, raising=False)
    plain = {**os.environ, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value.replace("TOKEN", str(known)))
    done, before = threading.Event(), heads()

    def held():
        yield from specs(tmp_path, 1)
        done.wait(5 * GENEROUS)

    def stranger(job=None, **own):
        words = [sys.executable, "-c", STRANGER, address, *([] if job is None else [str(tmp_path / job)])]
        settings = {"capture_output": True, "text": True, "timeout": 5 * GENEROUS}
        return subprocess.run(words, check=False, env={**plain, **own}, **settings)

    reports = run_ray(scale_work.noted, held(), 1)
    try:
        assert next(reports)["number"] == 0
        process, address = head_of(before)
        words = Path(f"/proc/{process}/environ").read_bytes().decode().split("\0")
        token = next(word.partition("=")[2] for word in words if word.startswith("RAY_AUTH_TOKEN="))
        assert token not in ("", "known")
        assert stranger().stdout == "refused\n"
        assert stranger(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN="known").stdout == "refused\n"
        if "RAY_ADDRESS" in environment:
            job = stranger("stranger")
            assert (job.returncode, job.stdout) == (1, "refused\n")
            assert "ConnectionError" in job.stderr
        ours = stranger("ours", RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=token)
        assert (ours.returncode, ours.stdout) == (0, "let in\n"), ours.stderr
    finally:
        done.set()
        assert list(reports) == []
    assert (tmp_path / "ours").exists()
    assert not (tmp_path / "stranger").exists()
    assert not list(home.iterdir())  # Ray would keep a token there
