"""Decoders in a process of their own, with a limit of memory and time.

Native decoders can crash or swell on hostile data. Here they run in a child process: a fresh interpreter, never a fork
of the host, that inherits no descriptor and no environment but what it needs to start. It is reused between samples;
its end costs one restart and an error for the sample at hand.
"""

from __future__ import annotations

import contextlib
import pickle
import threading
import weakref
from collections.abc import Iterator
from typing import Any

from mmprompt.errors import MMPromptError, PolicyError, SourceError, shown
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.sandbox.after_fork import forget_after_fork
from mmprompt.media.sandbox.child import FAULT, LONGEST, MEMORY, function_named
from mmprompt.media.sandbox.process import DecoderProcess, EndedError

_PIXEL = 16
"""Bytes that a decoder may need for a pixel: four of them, in a few copies."""

LEAST_MEMORY = 256 << 20
"""Bytes; Python, NumPy and FFmpeg's threads take half of it before they decode anything."""


class InlineDecoder:
    """Runs decoders in this process: the counterpart of ``IsolatedDecoder`` with the same methods."""

    def run(self, function: str, *arguments: Any) -> Any:
        """Return what ``function``, named as ``package.module:function``, gives for the arguments."""
        return function_named(function)(*arguments)

    def close(self) -> None:
        """Do nothing: there is nothing to end."""

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
        """Let go of children that belong to the process which this one was forked from."""
        for child in self._all:
            child.abandon()
        self._lock = threading.Lock()
        self._all = set()
        self._idle = []

    def end(self) -> None:
        """End what is idle; what is at work ends when it comes back."""
        with self._lock:
            self._round += 1
            idle, self._idle = self._idle, []
        for child, _ in idle:
            self._end(child)

    @contextlib.contextmanager
    def borrowed(self, *, fresh: bool) -> Iterator[DecoderProcess]:
        """Give a child to one thread, a new one if it is to be ``fresh``; one that does not come back well is ended."""
        with self._lock:
            child, round_ = self._idle.pop() if self._idle and not fresh else (None, self._round)
        if child is None:
            child = DecoderProcess(self._memory)
            with self._lock:
                self._all.add(child)
        fit = False
        try:
            yield child
            fit = True
        except MMPromptError:
            fit = True  # the job's own
            raise
        finally:
            with self._lock:
                fit = fit and round_ == self._round
                if fit:
                    self._idle.append((child, round_))
            if not fit:
                self._end(child)

    def _end(self, child: DecoderProcess) -> None:
        with self._lock:
            self._all.discard(child)
        child.end()


class IsolatedDecoder:
    """Runs decoders in child processes under limits. Safe between threads and across a fork; pickles.

    There are as many children as threads run something at once: a call takes one that is idle, else starts one.
    ``close`` (or leaving the context, or the end of the object) ends those that are idle; the decoder can be used
    again after it and starts new ones. A forked process and a pickled copy start with none.

    A child that has run something before may have been damaged by that. So a crash, or a lack of memory, in such a one
    is tried once more in a fresh child; the outcome is that of the sample alone, whatever was decoded before it.

    Args:
        policy: its ``timeout`` is the time limit of one call, start of the child not counted.
        memory_bytes: the most memory of a child, Python and libraries included; None for 1 GiB and 16 bytes a pixel of
            the policy's ``max_pixels``. A hard limit on Linux; elsewhere the child is watched and ended.

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
        """Pickle as the settings."""
        return IsolatedDecoder, (self.policy, self.memory_bytes)

    def __enter__(self) -> IsolatedDecoder:
        return self

    def __exit__(self, *_: object) -> None:
        """End the children."""
        self.close()

    def close(self) -> None:
        """End the idle children and wait for them; one that a thread is waiting for ends when its call is done."""
        self._children.end()

    def run(self, function: str, *arguments: Any) -> Any:
        """Return what ``function`` gives for the arguments in a child process.

        Args:
            function: ``package.module:function``, importable in a fresh interpreter with our ``sys.path``.
            arguments: values that pickle.

        Returns:
            A plain value, a named tuple of the media package, or a NumPy array; nothing else comes back.

        Raises:
            SourceError: the function crashed, took too much memory or time, or failed in a way it should not.
            PolicyError: no child can be started here.
            MMPromptError: what the function raised.
        """
        message = pickle.dumps((self.policy.timeout, function, arguments), 5)
        words = ""
        for again in (False, True):
            try:
                with self._children.borrowed(fresh=again) as child:
                    return child.ask(message, min(self.policy.timeout, LONGEST))
            except EndedError as end:
                words = self._words(end)
                if child.jobs == 1 or end.kind not in (MEMORY, EndedError.CRASH):
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
    """Return what runs decoders as ``policy.isolate`` says; close it when it is no longer needed."""
    return IsolatedDecoder(policy, memory_bytes) if policy.isolate else InlineDecoder()
