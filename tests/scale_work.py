"""Shard functions for tests of the engines, in a module that workers can import."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from mmprompt.errors import TaskError


def noted(spec: dict[str, Any]) -> dict[str, Any]:
    """Add a letter to the shard's file, and end as the spec says: ``deaths`` times by a signal, then well."""
    path = Path(spec["folder"], f"{spec['number']}.tries")
    with path.open("a") as file:
        file.write("x")
    print("a worker prints this")
    if path.stat().st_size <= spec.get("deaths", 0):
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(spec.get("seconds", 0))
    if "error" in spec:
        raise TaskError(spec["error"], "mend it")
    return {"number": spec["number"], "pid": os.getpid(), "folder": os.getcwd()}
