"""Shards as tasks of Ray: a local cluster on loopback, workers that die, errors, and a cluster of three nodes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import scale_work

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
