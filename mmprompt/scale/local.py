"""The engine ``local``: shards are done by processes of this machine."""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from typing import IO, Any, TypeVar, cast

from mmprompt.errors import MMPromptError, TaskError
from mmprompt.media.outputs import REPLACED

_S = TypeVar("_S")
Report = dict[str, Any]

DIED = "MM902"
"""The code of the error of a shard that ended its process."""

DEATHS = 20
"""How often the process of one shard may die."""

_BOOT = "import sys; sys.path[:] = sys.argv[1:]; from mmprompt.scale.worker import serve; serve()"


def run_local(
    work: Callable[[_S], Report], specs: Iterable[_S], workers: int | None = None
) -> Generator[Report, None, None]:
    """Yield the report of each shard as soon as it is done, in any order.

    ``work`` is a function of a module, such as ``render_shard``. A shard whose process dies is begun again in another
    one. The processes end with the iteration.

    Raises:
        MMPromptError: a shard ended its process too often.
    """
    jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
    done: queue.SimpleQueue[Report | BaseException | None] = queue.SimpleQueue()
    outputs = tuple(REPLACED.values())
    for spec in specs:
        jobs.put((work, spec, outputs))
    hands = [_Hand(jobs, done) for _ in range(min(workers or os.cpu_count() or 1, jobs.qsize()))]
    try:
        left = len(hands)
        while left:
            result = done.get()
            if isinstance(result, BaseException):
                raise result
            if result is None:
                left -= 1
            else:
                yield result
    finally:
        for hand in hands:
            hand.stop()


def _pickled(job: object) -> bytes:
    try:
        return pickle.dumps(job)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        what = f"the task cannot go to another process ({error})"
        raise TaskError(what, "leave out --engine; in Python define classes and functions in a module") from None


class _Hand:
    """A process that does one shard after another, and the thread that gives it the next."""

    def __init__(self, jobs: queue.SimpleQueue[Any], done: queue.SimpleQueue[Any]) -> None:
        self._jobs, self._done = jobs, done
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="mmprompt-shards", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the process, whatever it does."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stopped:
                try:
                    job = self._jobs.get_nowait()
                except queue.Empty:
                    break
                self._done.put(self._report(_pickled(job)))
        except BaseException as error:  # noqa: BLE001  # raised where the reports are read
            self._done.put(error)
        finally:
            self._end()
            self._done.put(None)

    def _report(self, job: bytes) -> Report:
        for _ in range(DEATHS):
            jobs, reports = self._started()
            try:
                jobs.write(job)
                jobs.flush()
                report, error = pickle.load(reports)  # noqa: S301  # of our own process
            except (EOFError, BrokenPipeError, pickle.UnpicklingError):
                self._end()
                if self._stopped:
                    break
                continue
            if error is not None:
                raise error
            found: Report = report
            return found
        what = f"the process of a shard died {DEATHS} times"
        raise MMPromptError(what, "give it more memory, or fewer workers", code=DIED)

    def _started(self) -> tuple[IO[bytes], IO[bytes]]:
        """Return the pipes to and from the process, which is started where there is none."""
        with self._lock:
            if self._process is None:
                pipe = subprocess.PIPE
                command = [sys.executable, "-c", _BOOT, *sys.path]
                own = os.name == "posix"  # an interrupt from the terminal reaches the driver alone
                self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, start_new_session=own)  # noqa: S603  # ours
            if self._stopped:
                self._process.kill()
            return cast("tuple[IO[bytes], IO[bytes]]", (self._process.stdin, self._process.stdout))

    def _end(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()
