"""Work done ahead by threads, given in order, with bounds on how much of it waits; only where threads gain time."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from mmprompt.errors import MMPromptError

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_I = TypeVar("_I")
_O = TypeVar("_O")

MOST_IN_A_BATCH = 256
"""How many small items a thread is given at once: handing them over costs more than working on them."""

BATCH_BYTES = 4 << 20
"""How many bytes a batch aims at."""

BATCH_SECONDS = 0.1
"""How long a batch may take: so long waits who leaves, and who looks at the progress."""

LARGEST_BATCH = 4 * BATCH_BYTES
"""From here on a thread leaves the rest of its batch undone: the items are larger than those before."""

_ALONE, _PROBE, _STRETCH = 0.5, 0.05, 2.0
"""Seconds before threads are tried, for which a way is tried, and for which the better one is kept after that."""

_RARELY = 20
"""A stretch lasts at least so many times as long as one item the other way: a look at that costs 5 % at most."""

_GAIN = 0.95
"""Threads have to take less than this part of the time that this thread takes alone."""


class _Batch(NamedTuple):
    """Items given to a thread, what it has made of them so far, and its work, which gives the bytes and seconds."""

    items: list[Any]
    made: list[Any]
    spent: Future[tuple[int, float]]


class _Ahead(Generic[_I, _O]):
    """One iteration: the items still to come, and the threads once they are tried."""

    def __init__(
        self,
        work: Callable[[_I], _O],
        items: Iterable[_I],
        workers: int,
        size_of: Callable[[_O], int],
        weight_of: Callable[[_I], int],
    ) -> None:
        self._work = work
        self._items = iter(items)
        self._workers = workers
        self._size_of = size_of
        self._weight_of = weight_of
        self._count = 1
        self._pool: ThreadPoolExecutor | None = None
        self._pending: deque[_Batch] = deque()
        self._fault: Exception | None = None
        self._left = False
        self.more = True

    def _take(self, count: int) -> list[_I]:
        """Take a batch of items: ``count``, or as many as weigh no more than the largest batch."""
        some: list[_I] = []
        weight = 0
        try:
            for item in itertools.islice(self._items, count):
                some.append(item)
                weight += self._weight_of(item)
                if weight > LARGEST_BATCH:
                    return some
        except (MMPromptError, OSError) as fault:
            self._fault = fault
        self.more = len(some) == count
        return some

    def alone(self, seconds: float) -> Iterator[_O]:
        """Work in this thread for about so long."""
        end = time.perf_counter() + seconds
        for item in self._items:
            yield self._work(item)
            if time.perf_counter() > end:
                return
        self.more = False

    def threaded(self, seconds: float, stack: ExitStack) -> Iterator[_O]:
        """Work in threads for about so long, and give what they made; none of it is left then."""
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  # only where they are tried

            self._pool = stack.enter_context(ThreadPoolExecutor(self._workers, "mmprompt"))
            stack.callback(self._leave)
        end = time.perf_counter() + seconds
        while True:
            while self.more and len(self._pending) <= self._workers and time.perf_counter() < end:
                if some := self._take(self._count):
                    into: list[_O] = []
                    self._pending.append(_Batch(some, into, self._pool.submit(self._fill, some, into)))
            if not self._pending:
                if self._fault is not None:
                    raise self._fault  # the items' own, at its turn
                return
            items, made, spent = self._pending.popleft()
            error = spent.exception()
            if error is None:
                size, took = spent.result()
                most = min(BATCH_BYTES / max(1, size), BATCH_SECONDS / max(1e-6, took)) * len(made)
                self._count = max(1, min(MOST_IN_A_BATCH, 2 * self._count, int(most)))
            yield from made
            if error is not None:
                raise error
            yield from map(self._work, items[len(made) :])

    def _fill(self, items: list[_I], made: list[_O]) -> tuple[int, float]:
        size, began = 0, time.perf_counter()
        for item in items:
            made.append(self._work(item))
            size += self._size_of(made[-1]) + self._weight_of(item)
            if size > LARGEST_BATCH or self._left:
                break
        return size, time.perf_counter() - began

    def _leave(self) -> None:
        """Have the threads end with the item that each is at."""
        self._left = True
        for batch in self._pending:
            batch.spent.cancel()


def ahead(
    work: Callable[[_I], _O],
    items: Iterable[_I],
    workers: int,
    size_of: Callable[[_O], int],
    weight_of: Callable[[_I], int],
) -> Generator[_O, None, None]:
    """Give ``work(item)`` for each item, in order; up to ``workers`` threads are at work on the next ones meanwhile.

    Python runs one thread at a time, so threads gain time only where the work waits for a disk or decodes media, and
    lose some elsewhere. Which it is shows: both ways are tried in turn for a moment, and the faster one is kept, with
    a look at the other every few seconds. ``items`` are taken in this thread. Of what threads made at most
    ``workers + 1`` batches wait, each of 16 MiB and one item at most, results and items together. What ``work`` or
    ``items`` raise is raised where its turn comes; threads end with the iteration.

    Args:
        work: called in the threads.
        items: what to work on.
        workers: how many threads.
        size_of: the bytes that a result holds beside its item.
        weight_of: the bytes that an item holds.
    """
    run = _Ahead(work, items, workers, size_of, weight_of)
    pace = {False: 0.0, True: 0.0}
    with ExitStack() as stack:
        for threads, seconds in _turns(pace):
            began, count = time.perf_counter(), 0
            for made in run.threaded(seconds, stack) if threads else run.alone(seconds):
                count += 1
                yield made
            if not run.more:
                return
            pace[threads] = (time.perf_counter() - began) / max(1, count)


def _turns(pace: dict[bool, float]) -> Iterator[tuple[bool, float]]:
    """Give whether to use threads, and for how many seconds; ``pace`` are the seconds that an item took each way."""
    yield False, _ALONE
    yield True, 2 * _PROBE  # the threads start, and the batches grow
    while True:
        threads = pace[True] < _GAIN * pace[False]
        yield threads, max(_STRETCH, _RARELY * pace[not threads])
        yield not threads, _PROBE
