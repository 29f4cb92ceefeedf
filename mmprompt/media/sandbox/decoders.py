"""Runs decoders in child processes with a limit on memory and time.

Native decoders can crash, hang or take gigabytes on hostile data. Here that ends a child process and costs the sample
at hand; the next sample gets a new child. A child is a fresh interpreter, never a fork of the host. It inherits no
descriptors, and of the environment only what it needs to start. Children are reused from sample to sample.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

from mmprompt.errors import PolicyError, SourceError, shown
from mmprompt.media.library_errors import library_errors
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.sandbox.answers import FAULT, MEMORY
from mmprompt.media.sandbox.children import Children
from mmprompt.media.sandbox.jobs import LONGEST, Job, name_of, packed_job
from mmprompt.media.sandbox.process import EndedError

if TYPE_CHECKING:
    from mmprompt.media.sandbox.answers import Value

_P = ParamSpec("_P")
_T = TypeVar("_T")

_PIXEL = 16
"""Bytes that a decoder may need for a pixel: four, in a few copies."""

HINT = "leave the sample out: its data may be damaged or hostile"

LEAST_MEMORY = 256 << 20
"""Bytes; Python, NumPy and FFmpeg's threads take half of it before they decode anything."""


def decoder_errors() -> AbstractContextManager[None]:
    """Return a context in which each exception of a decoder that runs in this process becomes a SourceError."""
    return library_errors("the decoder", "failed", HINT, "MM902")


class InlineDecoder:
    """Runs decoders in this process. It has the same methods as ``IsolatedDecoder``."""

    def run(self, function: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
        """Return what ``function`` returns for the arguments."""
        with decoder_errors():
            return function(*arguments, **named)

    def close(self) -> None:
        """Do nothing: there is no child to end."""

    def __enter__(self) -> InlineDecoder:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


class IsolatedDecoder:
    """Runs decoders in child processes with limits. Threads may share it; it survives a fork; it pickles.

    Each thread that runs something has its own child: a call takes an idle child or starts one. ``close`` (or
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
        self._children = Children(memory_bytes)
        weakref.finalize(self, self._children.end)

    def __reduce__(self) -> tuple[type[IsolatedDecoder], tuple[MediaPolicy, int]]:
        return IsolatedDecoder, (self.policy, self.memory_bytes)

    def __enter__(self) -> IsolatedDecoder:
        return self

    def __exit__(self, *_: object) -> None:
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
        job = packed_job(Job(name_of(function), arguments, named, self.policy.timeout))
        return cast(_T, self._run(job, fresh=False))

    def _run(self, job: list[bytes], *, fresh: bool) -> Value:
        try:
            return self._children.ask(job, self._seconds, fresh=fresh)
        except EndedError as end:
            return self._after(end, job)

    def _after(self, end: EndedError, job: list[bytes]) -> Value:
        """Try a job once more in a fresh child, if an earlier job may be to blame for the end; raise what it means."""
        if end.used and end.kind in (MEMORY, EndedError.CRASH):
            return self._run(job, fresh=True)
        raise SourceError(self._words(end), HINT, code="MM902") from None

    @property
    def _seconds(self) -> float:
        return min(self.policy.timeout, LONGEST)

    def _words(self, end: EndedError) -> str:
        if end.kind == MEMORY:
            return f"the decoder needed more than {self.memory_bytes >> 20} MiB of memory"
        if end.kind == EndedError.TIME:
            return f"the decoder took more than {self.policy.timeout:g} s"
        verb = "failed" if end.kind == FAULT else "crashed"
        return f"the decoder {verb} ({end.detail})"


Decoder = InlineDecoder | IsolatedDecoder


def decoder(policy: MediaPolicy, memory_bytes: int | None = None) -> Decoder:
    """Return the decoder that ``policy.isolate`` asks for. Close it when it is no longer needed."""
    return IsolatedDecoder(policy, memory_bytes) if policy.isolate else InlineDecoder()
