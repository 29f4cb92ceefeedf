"""That the check which runs around every test of this folder sees what it is there to see."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from leaks import held, left_behind
from time_taken import processor_seconds

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

LEAKY = """
import os, subprocess, sys, threading, time
import pytest
from leaks import left_behind

KEPT = []

def test_descriptor():
    KEPT.append(open(__file__))

def test_descriptor_in_the_place_of_another():
    KEPT.pop().close()
    KEPT.append(os.open(os.devnull, os.O_RDONLY))

def test_socket(tmp_path):
    import socket
    KEPT.append(socket.socket())

def test_thread():
    threading.Thread(target=time.sleep, args=(30,), daemon=True, name="sleeper").start()
    left_behind.__defaults__ = (0.3,)  # of the others none stays, however slow the machine is

def test_child():
    left_behind.__defaults__ = (20.0,)
    KEPT.append(subprocess.Popen([sys.executable, "-c", "pass"]))

@pytest.fixture
def file(tmp_path):
    with open(__file__) as it:
        yield it

def test_sound(file):
    thread = threading.Thread(target=time.sleep, args=(0.05,))
    thread.start()
    circle = [open(__file__)]
    circle.append(circle)

def test_sound_again(file):
    subprocess.run([sys.executable, "-c", "pass"], check=True)
"""


def test_a_test_that_leaves_something_behind_is_an_error(tmp_path):
    for name in ("conftest.py", "leaks.py"):
        shutil.copy(Path(__file__).with_name(name), tmp_path)
    (tmp_path / "test_leaky.py").write_text(LEAKY)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rE", "-p", "no:cacheprovider", "-W", "ignore", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "500", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = [line for line in done.stdout.splitlines() if line.startswith("ERROR ")]
    assert [line.partition("::")[2].split(" ")[0] for line in said] == [
        "test_descriptor",
        "test_descriptor_in_the_place_of_another",
        "test_socket",
        "test_thread",
        "test_child",
    ], done.stdout
    for line, word in zip(said, ("test_leaky.py", os.devnull, "socket:", "thread sleeper", "child "), strict=True):
        assert word in line, line
    assert "7 passed, 5 errors" in done.stdout


def test_a_look_costs_a_few_milliseconds_at_most():
    def look():
        assert not left_behind(held())

    assert processor_seconds(look, enough=0.003, tries=50) < 0.003


def test_what_ends_by_itself_is_no_leak():
    before = held()
    threading.Thread(target=time.sleep, args=(0.1,)).start()
    assert left_behind(before, patience=20.0) == ""
    done = threading.Event()
    late = threading.Thread(target=done.wait, args=(20.0,), name="late")
    late.start()
    assert "thread late" in left_behind(before, patience=0.05)
    done.set()
    late.join()
