"""``mmprompt serve`` as a process: one line on standard output, and a clean end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from typing import Any

import pytest


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_url_answers_and_ends_cleanly(interrupted_environment: dict[str, str], end: int) -> None:
    # a shell that started the tests in the background made them deaf to SIGINT
    hear = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    words = [sys.executable, "-m", "mmprompt", "serve", "builtin:shapes"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, env=interrupted_environment, text=True, **streams, **hear) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/v1", url)
            with urllib.request.urlopen(f"{url}/models", timeout=20) as answer:
                assert json.load(answer)["data"][0]["id"] == "builtin:shapes"
            body = {"messages": [{"role": "user", "content": "Which shape is this?"}]}
            request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode())
            with urllib.request.urlopen(request, timeout=20) as answer:
                assert json.load(answer)["choices"][0]["message"]["content"]
            process.send_signal(end)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, out) == (0, "")
    assert err == "mmprompt: builtin:shapes is served; Ctrl-C ends it\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nothing-here",), "there is no model 'nothing-here'"),
        (("builtin:shapes", "--port", "70000"), "'70000' is not a port; give a number to 65535"),
        (("builtin:shapes", "--port", "x"), "'x' is not a port"),
        ((), "the following arguments are required: MODEL"),
    ],
)
def test_what_is_wrong_is_told(command: Any, words: tuple[str, ...], told: str) -> None:
    done = command("serve", *words)
    assert (done.returncode, done.stdout) == (2, b"")
    assert told in done.stderr.decode()
