"""Runs decoders in child processes with a limit on memory and time.

Native decoders can crash, hang or take gigabytes on hostile data. Here that ends a child process and costs the sample
at hand; the next sample gets a new child. A child is a fresh interpreter, never a fork of the host. It inherits no
descriptors, and of the environment only what it needs to start. Children are reused from sample to sample.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar, cast

from mmprompt.errors import MMPromptError, PolicyError, SourceError, shown
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.sandbox.after_fork import forget_after_fork
from mmprompt.media.sandbox.answers import FAULT, MEMORY
from mmprompt.media.sandbox.jobs import LONGEST, Job, name_of, packed_job
from mmprompt.media.sandbox.process import DecoderProcess, EndedError

_P = ParamSpec("_P")
_T = TypeVar("_T")

_PIXEL = 16
"""Bytes that a decoder may need for a pixel: four, in a few copies."""

LEAST_MEMORY = 256 << 20
"""Bytes; Python, NumPy and FFmpeg's threads take half of it before they decode anything."""


class InlineDecoder:
    """Runs decoders in this process. It has the same methods as ``IsolatedDecoder``."""

    def run(self, function: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
        """Return what ``function`` returns for the arguments."""
        return function(*arguments, **named)

    def close(self) -> None:
        """Do nothing: there is no child to end."""

    def __enter__(self) -> InlineDecoder:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


class _Children:
    """The child processes of one decoder: those at work, and those that are idle."""

    __slots__ = ("__weakref__", "_all", "_idle", "_lock", "_memory", "_round")

    def __init__(self, memory_bytes: int) -> None:
        self._memory = memory_bytes
        self._round = 0
        self._lock = threading.Lock()
        self._all: set[DecoderProcess] = set()
        self._idle: list[tuple[DecoderProcess, int]] = []
        forget_after_fork(self)

    def forget(self) -> None:
        """Let go of the children of the process that this one was forked from."""
        for child in self._all:
            child.abandon()
        self._lock = threading.Lock()
        self._all = set()
        self._idle = []

    def end(self) -> None:
        """End the idle children. A child at work ends when its job is done."""
        with self._lock:
            self._round += 1
            idle, self._idle = self._idle, []
        for child, _ in idle:
            self._end(child)

    def ask(self, job: Sequence[bytes], seconds: float, *, fresh: bool) -> object:
        """Return what a child answers: an idle one, or a new one if ``fresh``. A child that fails is ended.

        Raises:
            EndedError: the child ended without an answer; ``used`` if it had answered other jobs before.
            MMPromptError: the error of the job itself.
        """
        child, round_ = self._borrowed(fresh=fresh)
        fit = False
        try:
            answer = child.ask(job, seconds)
            fit = True
        except MMPromptError:
            fit = True
            raise
        finally:
            with self._lock:
                fit = fit and round_ == self._round
                if fit:
                    self._idle.append((child, round_))
            if not fit:
                self._end(child)
        return answer

    def _borrowed(self, *, fresh: bool) -> tuple[DecoderProcess, int]:
        """Return a child for one thread, and the number of the round (they count ``end``) that it belongs to."""
        with self._lock:
            if self._idle and not fresh:
                return self._idle.pop()
            round_ = self._round
        child = DecoderProcess(self._memory)
        with self._lock:
            self._all.add(child)
        return child, round_

    def _end(self, child: DecoderProcess) -> None:
        with self._lock:
            self._all.discard(child)
        child.end()


class IsolatedDecoder:
    """Runs decoders in child processes with limits. Threads may share it; it survives a fork; it pickles.

    Each thread that runs something has a child of its own: a call takes an idle child or starts one. ``close`` (or
    leaving the context, or the end of the object) ends the idle children; a later call starts new ones. A forked
    process and a pickled copy start without children.

    An earlier sample may have damaged a child. So a crash or a lack of memory in a used child is tried once more in a
    fresh one, and the outcome depends on the sample alone.

    Args:
        policy: its ``timeout`` limits one call; the start of a child does not count.
        memory_bytes: the most memory of a child, Python and libraries included; by default 1 GiB and 16 bytes for each
            of the policy's ``max_pixels``. Linux enforces it; elsewhere the parent watches the child and ends it.

    Raises:
        PolicyError: ``memory_bytes`` is less than 256 MiB.
    """

    def __init__(self, policy: MediaPolicy, memory_bytes: int | None = None) -> None:
        if memory_bytes is None:
            memory_bytes = (1 << 30) + _PIXEL * policy.max_pixels
        if isinstance(memory_bytes, bool) or not isinstance(memory_bytes, int) or memory_bytes < LEAST_MEMORY:
            raise PolicyError(
                f"memory_bytes is {shown(memory_bytes)}", f"give at least {LEAST_MEMORY}: the libraries need that"
            )
        self.policy = policy
        self.memory_bytes = memory_bytes
        self._children = _Children(memory_bytes)
        weakref.finalize(self, self._children.end)

    def __reduce__(self) -> tuple[type[IsolatedDecoder], tuple[MediaPolicy, int]]:
        """Pickle the settings."""
        return IsolatedDecoder, (self.policy, self.memory_bytes)

    def __enter__(self) -> IsolatedDecoder:
        return self

    def __exit__(self, *_: object) -> None:
        """End the children."""
        self.close()

    def close(self) -> None:
        """End the idle children and wait for them. A child at work ends when its job is done."""
        self._children.end()

    def run(self, function: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
        """Return what ``function`` returns for the arguments, run in a child process.

        Args:
            function: a function at the top of a module that a fresh interpreter can import with our ``sys.path``.
            arguments: values that pickle.
            named: the same, by name.

        Returns:
            A plain value, a named tuple of the media package, or a NumPy array; nothing else can be sent back.

        Raises:
            SourceError: the function crashed, took too much memory or time, or raised an error that is not ours.
            PolicyError: no child can be started here.
            MMPromptError: the error that the function raised.
        """
        seconds = self.policy.timeout
        job = packed_job(Job(name_of(function), arguments, named, seconds))
        words = ""
        for again in (False, True):
            try:
                return cast(_T, self._children.ask(job, min(seconds, LONGEST), fresh=again))
            except EndedError as end:
                words = self._words(end)
                if not end.used or end.kind not in (MEMORY, EndedError.CRASH):
                    break
        raise SourceError(words, _HINT)

    def _words(self, end: EndedError) -> str:
        if end.kind == MEMORY:
            return f"the decoder needed more than {self.memory_bytes >> 20} MiB of memory"
        if end.kind == EndedError.TIME:
            return f"the decoder took more than {self.policy.timeout:g} s"
        verb = "failed" if end.kind == FAULT else "crashed"
        return f"the decoder {verb} ({end.detail})"


_HINT = "the data may be damaged or hostile; leave the sample out, or look at it with care"

Decoder = InlineDecoder | IsolatedDecoder


def decoder(policy: MediaPolicy, memory_bytes: int | None = None) -> Decoder:
    """Return the decoder that ``policy.isolate`` asks for. Close it when it is no longer needed."""
    return IsolatedDecoder(policy, memory_bytes) if policy.isolate else InlineDecoder()
