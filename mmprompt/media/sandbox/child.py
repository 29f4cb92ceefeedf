"""The program of a child process: it runs one function at a time on bytes that may be hostile.

The child knows only what it is sent, writes no file and prints nothing. It ends with its parent: at the end of the pipe
between two jobs; during a job at once on Linux, elsewhere by its own alarm.
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import sys
from collections.abc import Sequence
from types import TracebackType

from mmprompt.errors import MMPromptError
from mmprompt.media.sandbox.answers import ERROR, FAULT, LENGTH, MEMORY, READY, RESULT, packed_answer
from mmprompt.media.sandbox.jobs import LONGEST, Job, buffers_of, function_named, read_job, write_some

_GRACE = 1.0
"""Seconds between the parent's time limit and the child's alarm. The parent should be first: it can name the cause."""

_OPEN_FILES = 64
"""Descriptors; a decoder needs a few to import its libraries."""


def serve(life: int, jobs: int, answers: int, media_file: int, memory_bytes: int) -> None:
    """Answer jobs until the pipe that brings them is closed.

    Args:
        life: the descriptor of the pipe whose end ends this process.
        jobs: the descriptor to read jobs from, see ``begin_job``.
        answers: the descriptor to write answers to, see ``packed_answer``; ``READY`` before the first job.
        media_file: the descriptor of the file in memory that brings media; -1 if there is none.
        memory_bytes: the most memory of this process; 0 if the parent watches it instead.
    """
    _restrict(memory_bytes)
    _end_with(life)
    too_much = packed_answer(MEMORY, None)  # made while there is memory

    def report(kind: type[BaseException], _value: BaseException, _trace: TracebackType | None) -> None:
        _send(answers, packed_answer(FAULT, kind.__name__))

    # anything but a result or an error of ours ends this process; the parent learns the type of the exception
    sys.excepthook = report
    _send(answers, packed_answer(READY, None))
    with os.fdopen(jobs, "rb") as file:
        while True:
            try:
                job = read_job(file, media_file)
                if job is None:
                    break
                signal.setitimer(signal.ITIMER_REAL, min(job.seconds, LONGEST) + _GRACE)
                answer = _answer(job)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except MemoryError:
                _send(answers, too_much)
                break
            _send(answers, answer)
            del job, answer
    os._exit(0)  # there is nothing to flush, and libraries take their time to end


def _answer(job: Job) -> list[bytes | memoryview]:
    try:
        return packed_answer(RESULT, function_named(job.function)(*job.arguments, **job.named))
    except MMPromptError as error:
        return packed_answer(ERROR, error)


def _end_with(life: int) -> None:
    """End this process, even inside native code, when the parent closes the pipe ``life`` or is killed.

    Nothing is ever written to that pipe, so its only news is its end. Linux sends SIGIO for it, whose default action
    ends a process. macOS ignores that signal.
    """
    if sys.platform.startswith("linux"):
        fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)


def _restrict(memory_bytes: int) -> None:
    """Limit memory, core dumps and files, and set signals to their default actions."""
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 0)
    _lower(resource.RLIMIT_NOFILE, _OPEN_FILES)
    if memory_bytes:
        _lower(resource.RLIMIT_DATA, memory_bytes)
        # reserved address space costs nothing, and libraries reserve much
        _lower(resource.RLIMIT_AS, 2 * memory_bytes + (1 << 30))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # a child inherits what the host's thread blocks


def _lower(which: int, most: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(which, (most, most))


def _send(descriptor: int, answer: Sequence[bytes | memoryview]) -> None:
    queue = buffers_of([sum(map(len, answer)).to_bytes(LENGTH, "big"), *answer])
    while queue:
        write_some(descriptor, queue)
