"""The process that does shards for the engine ``local``: jobs come in on standard input, reports go out."""

from __future__ import annotations

import os
import pickle
import queue
import sys
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from mmprompt.errors import MMPromptError
from mmprompt.media.outputs import replacing

_Job = tuple[Callable[[Any], object], object, tuple[str, ...]]
"""A function, what it is called with, and the files that the driver is about to replace."""


def serve() -> None:
    """Do one job after another, until standard input ends. If it ends during a job, the driver is gone: stop."""
    jobs, reports = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a job prints is no report
    waiting: queue.SimpleQueue[_Job] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(jobs, waiting), daemon=True).start()
    while True:
        work, spec, outputs = waiting.get()
        report: object = None
        fault: Exception | None = None
        try:
            with replacing(*outputs):
                report = work(spec)
        except Exception as error:  # noqa: BLE001  # raised in the driver
            fault = error
        reports.write(_answer(report, fault))
        reports.flush()


def _answer(report: object, fault: Exception | None) -> bytes:
    try:
        answer = pickle.dumps((report, fault))
        if fault is not None:
            pickle.loads(answer)  # noqa: S301  # our own
    except Exception:  # noqa: BLE001  # an error of a library may not pickle, in its own way
        return pickle.dumps((None, MMPromptError(f"a shard failed: {fault!r}")))
    return answer


def _receive(jobs: BinaryIO, waiting: queue.SimpleQueue[_Job]) -> None:
    while True:
        try:
            waiting.put(pickle.load(jobs))  # noqa: S301  # of the driver that started this process
        except (EOFError, OSError, pickle.UnpicklingError):
            os._exit(0)
