"""The process that does shards for the engine ``local``: jobs come in on standard input, reports go out."""

from __future__ import annotations

import os
import pickle
import queue
import sys
import threading
from typing import BinaryIO

from mmprompt.errors import MMPromptError


def serve() -> None:
    """Do one job after another, until standard input ends. If it ends during a job, the driver is gone: stop."""
    jobs, reports = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a job prints is no report
    waiting: queue.SimpleQueue[tuple[object, ...]] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(jobs, waiting), daemon=True).start()
    while True:
        work, spec = waiting.get()
        report: object = None
        fault: Exception | None = None
        try:
            report = work(spec)  # type: ignore[operator]  # a function
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


def _receive(jobs: BinaryIO, waiting: queue.SimpleQueue[tuple[object, ...]]) -> None:
    while True:
        try:
            waiting.put(pickle.load(jobs))  # noqa: S301  # of the driver that started this process
        except (EOFError, OSError, pickle.UnpicklingError):
            os._exit(0)
