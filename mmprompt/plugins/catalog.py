"""Whether each runner is installed, and finds and loads its plugin.

The runner is imported in a separate process: its failures and its imports stay there.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib import metadata
from typing import NamedTuple

from mmprompt.plugins.runners import Runner

TIMEOUT = 180.0
"""Seconds for the imports of one runner. Some load PyTorch."""

_MARK = "mmprompt-plugins:"
_IMPORTS = """
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
print("\\nmmprompt-plugins:" + json.dumps(fault), flush=True)
"""


class State(NamedTuple):
    """The state of a runner.

    ``version`` is None if it is not installed. ``registered`` says how it finds our plugin; empty if it does not.
    ``fault`` says why the plugin does not load; empty if it loads.
    """

    runner: Runner
    version: str | None
    registered: str
    fault: str

    @property
    def sound(self) -> bool:
        """True if the runner is not installed, or finds and loads its plugin."""
        return self.version is None or (bool(self.registered) and not self.fault)


def state_of(runner: Runner, timeout: float = TIMEOUT) -> State:
    """Return the state of a runner."""
    version = runner.version
    found = ("", "") if version is None else (_registered(runner), _fault(runner, timeout))
    return State(runner, version, *found)


def _registered(runner: Runner) -> str:
    """Return how the runner finds our plugin, from the installed metadata; empty if it does not."""
    if not runner.group:
        return runner.registration
    for entry in metadata.entry_points(group=runner.group):
        if entry.value.partition(":")[0] in runner.modules:
            return f"{runner.registration} ({runner.group}: {entry.name} = {entry.value})"
    return ""


def _fault(runner: Runner, timeout: float) -> str:
    """Return why a module of the runner does not import; empty if all do."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    words = [sys.executable, "-c", _IMPORTS, package, *runner.modules]
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
