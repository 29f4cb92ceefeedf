"""Whether a runner is there and takes our door: looked at from outside, so that nothing of it loads here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib import metadata
from typing import NamedTuple

from mmprompt.plugins.catalog import Runner

TIMEOUT = 180.0
"""Seconds for the imports of one runner; some load PyTorch."""

_MARK = "mmprompt-plugins:"
_TRY = """
import importlib, json, sys, traceback
if sys.path[:1] == [""]:
    del sys.path[0]
sys.path.append(sys.argv[1])
fault = ""
for name in sys.argv[2:]:
    try:
        importlib.import_module(name)
    except BaseException as error:
        words = traceback.format_exception_only(type(error), error)[-1].strip()
        frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith("<")]
        place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames[1:] else ""
        fault = f"import {name}: {words}{place}"
        break
print()
print("mmprompt-plugins:" + json.dumps(fault), flush=True)
"""


class State(NamedTuple):
    """What was found: ``version`` None where the runner is absent, ``registered`` and ``fault`` empty where nothing."""

    runner: Runner
    version: str | None
    registered: str
    fault: str

    @property
    def sound(self) -> bool:
        """Whether it is absent, or works."""
        return self.version is None or (bool(self.registered) and not self.fault)


def state_of(runner: Runner, timeout: float = TIMEOUT) -> State:
    """Return the state of a runner. Its imports are tried in a process of their own, which may fail as it likes."""
    try:
        version = metadata.version(runner.distribution)
    except metadata.PackageNotFoundError:
        return State(runner, None, "", "")
    return State(runner, version, _registered(runner), _fault(runner, timeout))


def _registered(runner: Runner) -> str:
    """Return how the runner finds us, as the installed metadata say; empty if it does not."""
    if not runner.group:
        return runner.registration
    for entry in metadata.entry_points(group=runner.group):
        if entry.value.partition(":")[0] in runner.modules:
            return f"{runner.registration} ({runner.group}: {entry.name} = {entry.value})"
    return ""


def _fault(runner: Runner, timeout: float) -> str:
    """Return why the doors of a runner do not load; empty if they do."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    words = [sys.executable, "-c", _TRY, package, *runner.modules]
    try:
        done = subprocess.run(  # noqa: S603  # our own interpreter and code
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return f"its import took longer than {timeout:g} s"
    said = done.stdout.decode("utf-8", "replace").rpartition("\n" + _MARK)
    if said[1]:
        fault: str = json.loads(said[2].split("\n")[0])
        return fault
    last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    ended = signal.strsignal(-done.returncode) if done.returncode < 0 else f"code {done.returncode}"
    return f"the import of {runner.modules[0]} ended its process with {ended}{': ' if last else ''}{last}"
