"""The process that ``decoders`` starts: it runs one function at a time on bytes that may be hostile.

It knows only what it is sent, writes no file, prints nothing, and ends with its parent: when the pipe closes, and in
the middle of a job by an alarm of its own.
"""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from mmprompt.errors import MMPromptError
from mmprompt.media.sandbox.answers import packed_answer

LENGTH = 8
"""Bytes of the length before each message."""
LONGEST = 1e6
"""Seconds; no time limit is longer."""
GRACE = 1.0
"""Seconds that the alarm of the child comes after the time limit of its parent, who has the better words."""

READY = "ready"
RESULT = "result"
ERROR = "error"
MEMORY = "memory"
FAULT = "fault"


def serve(jobs: int, answers: int, memory_bytes: int) -> None:
    """Read jobs from one descriptor and answer them on the other, until there are no more.

    Args:
        jobs: gives, for each job, a pickled triple: seconds, the function as ``module:name``, its arguments.
        answers: takes, for each job, what ``packed_answer`` gives; ``READY`` before the first.
        memory_bytes: the most that this process may have; 0 where the parent watches.
    """
    _restrict(memory_bytes)
    too_much = packed_answer(MEMORY, None)  # made while there is memory

    def report(kind: type[BaseException], _value: BaseException, _trace: TracebackType | None) -> None:
        _send(answers, packed_answer(FAULT, kind.__name__))

    # what is neither a result nor an error of ours ends this process, and says what it was
    sys.excepthook = report
    _send(answers, packed_answer(READY, None))
    while (message := _receive(jobs)) is not None:
        try:
            seconds, name, arguments = pickle.loads(message)  # noqa: S301  # from the parent
            del message
            function = function_named(name)
            signal.setitimer(signal.ITIMER_REAL, min(seconds, LONGEST) + GRACE)
            answer = _answer(function, arguments)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except MemoryError:
            answer = too_much
        _send(answers, answer)
        if answer is too_much:
            break
    os._exit(0)  # nothing to flush, and libraries take their time to end


def function_named(name: str) -> Callable[..., Any]:
    """Return the function that ``package.module:function`` names."""
    module, _, attribute = name.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return function


def _answer(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    try:
        return packed_answer(RESULT, function(*arguments))
    except MMPromptError as error:
        return packed_answer(ERROR, error)


def _restrict(memory_bytes: int) -> None:
    """Limit what this process may do: memory, no core dump, no file longer than nothing, the default alarm."""
    import resource  # noqa: PLC0415  # POSIX only

    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 0)
    if memory_bytes:
        _lower(resource.RLIMIT_DATA, memory_bytes)
        # address space that is only reserved costs nothing, and libraries reserve much
        _lower(resource.RLIMIT_AS, 2 * memory_bytes + (1 << 30))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # what the host's thread blocked is blocked here too


def _lower(which: int, most: int) -> None:
    import resource  # noqa: PLC0415  # POSIX only

    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(which, (most, most))


def _receive(descriptor: int) -> bytearray | None:
    """Return the next message, or None at the end."""
    head = _read(descriptor, LENGTH)
    return None if head is None else _read(descriptor, int.from_bytes(head, "big"))


def _read(descriptor: int, size: int) -> bytearray | None:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = os.readv(descriptor, [view])
        if not count:
            return None
        view = view[count:]
    return data


def _send(descriptor: int, message: bytes) -> None:
    view = memoryview(len(message).to_bytes(LENGTH, "big") + message)
    while view:
        view = view[os.write(descriptor, view) :]
