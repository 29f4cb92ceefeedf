"""The child processes of one decoder: started on demand, lent to one thread at a time, ended together."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mmprompt.errors import MMPromptError
from mmprompt.media.sandbox.after_fork import forget_after_fork
from mmprompt.media.sandbox.process import DecoderProcess

if TYPE_CHECKING:
    from mmprompt.media.sandbox.answers import Value

_Lent = tuple[DecoderProcess, int]


class Children:
    """The children at work, and those that are idle. Threads may share it.

    Args:
        memory_bytes: the most memory of a child.
    """

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

    def ask(self, job: Sequence[bytes], seconds: float, *, fresh: bool) -> Value:
        """Return what a child answers: an idle one, or a new one if ``fresh``. A child that fails is ended.

        Raises:
            EndedError: the child ended without an answer.
            MMPromptError: the error of the job itself.
        """
        child, round_ = self._borrowed(fresh=fresh)
        fit = False
        try:
            child.send(job, seconds)
            answer = child.receive(seconds)
            fit = True
        except MMPromptError:
            fit = True
            raise
        finally:
            self._give_back(child, round_, fit=fit)
        return answer

    def _borrowed(self, *, fresh: bool) -> _Lent:
        """Return a child for one thread, and the number of the round (they count ``end``) that it belongs to."""
        with self._lock:
            if self._idle and not fresh:
                return self._idle.pop()
            round_ = self._round
        child = DecoderProcess(self._memory)
        with self._lock:
            self._all.add(child)
        return child, round_

    def _give_back(self, child: DecoderProcess, round_: int, *, fit: bool) -> None:
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
