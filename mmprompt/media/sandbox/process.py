"""One child process from its parent's side: started, asked, watched, ended."""

from __future__ import annotations

import math
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mmprompt.errors import MMPromptError, PolicyError
from mmprompt.media.sandbox.answers import ERROR, FAULT, LENGTH, MEMORY, RESULT, AnswerError, answer_of
from mmprompt.media.sandbox.interpreter import HINT, start_child
from mmprompt.media.sandbox.jobs import begin_job, buffers_of, write_some

if TYPE_CHECKING:
    from mmprompt.media.sandbox.answers import Value

HARD_LIMIT = sys.platform.startswith("linux")
"""Whether the system enforces the memory limit of a process. Elsewhere (macOS) the parent watches the child."""
WATCH = 0.05
"""Seconds between two looks at the memory of a watched child."""

_FIRST_PIECE, _PIECE = 1 << 16, 1 << 20
_START = 30.0
_END = 1.0


class EndedError(Exception):
    """The child is gone or has to be ended: the ``kind`` of end, and a detail of it in words.

    ``used`` if the child had done other jobs before.
    """

    CRASH = "crash"
    TIME = "time"

    def __init__(self, kind: str, detail: str, *, used: bool) -> None:
        super().__init__(kind, detail)
        self.kind = kind
        self.detail = detail
        self.used = used


class DecoderProcess:
    """A child that waits for jobs. One thread may use it at a time.

    Raises:
        PolicyError: no child can be started here.
    """

    __slots__ = (
        "_answers",
        "_early",
        "_hears",
        "_jobs",
        "_life",
        "_media_file",
        "_memory",
        "_process",
        "_takes",
        "_used",
    )

    def __init__(self, memory_bytes: int) -> None:
        self._early = bytearray()
        self._used = False
        self._memory = memory_bytes
        started = start_child(memory_bytes if HARD_LIMIT else 0)
        self._process, self._life, self._jobs, self._answers, self._media_file = started
        self._hears = select.poll()
        self._hears.register(self._answers, select.POLLIN)
        self._takes = select.poll()
        self._takes.register(self._jobs, select.POLLOUT)
        try:
            self._message(time.monotonic() + _START)  # READY; a program that is not Python does not say it
        except EndedError as end:
            self.end()
            raise PolicyError(f"the decoding process does not start ({end.detail or end.kind})", HINT) from None
        except BaseException:
            self.end()
            raise

    def send(self, job: Sequence[bytes], seconds: float) -> None:
        """Write a job (see ``packed_job``) within so many seconds. The one before it must be answered.

        Raises:
            EndedError: the child is gone, or does not take the job; end it.
        """
        # an answer without a job must not become the answer to this one
        if self._early or self._hears.poll(0):
            raise self._ended(EndedError.CRASH, "it answered without a job, or is gone")
        deadline = time.monotonic() + seconds
        queue = buffers_of(begin_job(job, self._media_file))
        try:
            while queue:
                try:
                    write_some(self._jobs, queue)
                except BlockingIOError:
                    self._wait(self._takes, deadline)
        except BrokenPipeError:
            raise self._gone() from None

    def receive(self, seconds: float) -> Value:
        """Return the answer to the job that was sent, within so many seconds.

        Raises:
            EndedError: the child did not answer; end it.
            MMPromptError: the error that the job raised; the child can be used again.
        """
        kind, value = self._message(time.monotonic() + seconds)
        if kind not in (ERROR, RESULT) or (kind == ERROR) != isinstance(value, MMPromptError):
            raise self._ended(kind if kind in (MEMORY, FAULT) else EndedError.CRASH, str(value))
        self._used = True
        if isinstance(value, MMPromptError):
            raise value
        return value

    def end(self) -> None:
        """End the child at once, since it keeps nothing, and wait until it is gone."""
        self._close()
        self._process.kill()
        self._process.wait()

    def abandon(self) -> None:
        """Let go of a child that belongs to the process which this one was forked from."""
        self._close()
        self._process.returncode = 0  # this process neither waits for it nor warns about it

    def _close(self) -> None:
        for descriptor in (self._life, self._jobs, self._answers, self._media_file):
            if descriptor >= 0:
                os.close(descriptor)

    def _message(self, deadline: float) -> tuple[str, Value]:
        message, self._early = self._early, bytearray()
        size = LENGTH
        while True:
            if size == LENGTH <= len(message):
                size += int.from_bytes(message[:LENGTH], "big")
            if size > self._memory:
                raise self._ended(EndedError.CRASH, f"it announced an answer of {size} bytes")
            if LENGTH < size <= len(message):
                break
            self._wait(self._hears, deadline)
            self._read_into(message)
        if len(message) > size:
            self._early += memoryview(message)[size:]
        try:
            return answer_of(memoryview(message)[LENGTH:size])
        except AnswerError as error:
            raise self._ended(EndedError.CRASH, f"its answer is malformed: {error}") from None

    def _read_into(self, message: bytearray) -> None:
        """Read what is there. The message grows with what comes, not with what it announces."""
        piece = os.read(self._answers, _PIECE if message else _FIRST_PIECE)
        if not piece:
            raise self._gone()
        message += piece
        if len(message) > self._memory:
            raise self._ended(EndedError.CRASH, f"it sent more than {self._memory} bytes")

    def _wait(self, until: select.poll, deadline: float) -> None:
        """Wait until a pipe is ready. Check the time, and the memory where the system does not limit it."""
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._ended(EndedError.TIME)
            if until.poll(math.ceil(1000 * (left if HARD_LIMIT else min(left, WATCH)))):
                return
            if not HARD_LIMIT and resident_bytes(self._process.pid) > self._memory:
                raise self._ended(MEMORY)

    def _gone(self) -> EndedError:
        """Return how a child ended that closed its pipe."""
        try:
            status = self._process.wait(_END)
        except subprocess.TimeoutExpired:
            return self._ended(EndedError.CRASH, "it closed its pipe")
        if status == -signal.SIGALRM:
            return self._ended(EndedError.TIME)
        return self._ended(EndedError.CRASH, _status_words(status))

    def _ended(self, kind: str, detail: str = "") -> EndedError:
        return EndedError(kind, detail, used=self._used)


def _status_words(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def resident_bytes(pid: int) -> int:
    """Return how much memory a process has in use; 0 if that is unknown."""
    try:
        done = subprocess.run(  # noqa: S603  # no part of it comes from data
            ["/bin/ps", "-o", "rss=", "-p", str(pid)], stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        return int(done.stdout) << 10
    except (OSError, ValueError):
        return 0
