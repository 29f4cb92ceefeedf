"""Requests in flight: several at once, each tried again after its own pause, as fast as the server takes them."""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Generic, TypeVar

from mmprompt.media.fetch.retries import pause_before
from mmprompt.run.model import Answer
from mmprompt.run.pace import Pace

_T = TypeVar("_T")

ATTEMPTS = 10
LATE_ATTEMPTS = 1
"""The most attempts that may take the whole timeout: a model that never ends would block a thread for long. A run asks
once more at its end."""

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
LONGEST_WISH = 120.0
"""Seconds. If a server asks for a longer wait, there is no other attempt."""

_FIRST_CONTACT = 4
"""The most attempts at a server that was never there: most often the address is wrong. The fewest items in a row that
end a run because the server is gone, or gave no answer in time from the first on: a server may answer all but a few."""

_WAITING = 4
"""How many jobs there may be for each that can be in flight, those that wait for another attempt among them."""

_NEW = 2
"""The same without those that wait."""

_NEVER = float("inf")
_AWAKE = 0.2
"""Seconds after which a thread that waits for answers wakes up."""


class _Job(Generic[_T]):
    """An item to ask, and its attempts so far."""

    __slots__ = ("attempts", "begun", "item", "late")

    def __init__(self, item: _T) -> None:
        self.item = item
        self.attempts = 0
        self.late = 0
        self.begun = 0.0


class Flight(Generic[_T]):
    """Asks for items in threads of its own; one thread adds items and takes their answers, in the order they come.

    An item that waits for another attempt holds neither a thread nor a place in flight: the others go on.

    Args:
        ask: gives the answers of at most ``batch`` items with one attempt each. It is called from several threads.
        concurrency: the most calls at once; fewer after answers that are ``busy``.
        batch: the most items in one call.
        attempts: the most attempts for one item.
        rpm: the most items that begin in a minute; None for no bound.
        met: whether the server gave an answer before.
    """

    def __init__(
        self,
        ask: Callable[[Sequence[_T]], Sequence[Answer]],
        *,
        concurrency: int,
        batch: int = 1,
        attempts: int = ATTEMPTS,
        rpm: float | None = None,
        met: bool = False,
    ) -> None:
        self.retries = 0
        self._ask = ask
        self._pace = Pace(concurrency, rpm)
        self._concurrency = concurrency
        self._batch = batch
        self._attempts = attempts
        self._ready: deque[_Job[_T]] = deque()
        self._due: list[tuple[float, int, _Job[_T]]] = []
        self._flying: list[_Job[_T]] = []
        self._calls = 0
        self._done: deque[tuple[_T, Answer]] = deque()
        self._fault: BaseException | None = None
        self._contact: float | None = 0.0 if met else None  # when the server was last there
        self._lost = 0  # items without an answer since then
        lock = threading.Lock()
        self._work = threading.Condition(lock)  # there may be work
        self._news = threading.Condition(lock)  # there is an answer, or nothing is left
        self._threads: list[threading.Thread] = []
        self._watched = _NEVER  # until when one of the idle threads waits; the others wait for it
        self._taker_waits = False
        self._stopped = self._closed = False

    def __enter__(self) -> Flight[_T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the threads. After an exception, those in the middle of a request are not waited for."""
        with self._work:
            self._stopped = self._closed = True
            self._work.notify_all()
        for thread in self._threads if kind is None else ():
            thread.join()

    @property
    def least(self) -> int:
        """The lowest number of calls at once that the server's push-backs led to."""
        return self._pace.least

    def room(self) -> bool:
        """Return whether another item may be added, so that memory holds only what is in flight or about to be."""
        with self._work:
            new = len(self._ready) + len(self._flying) + len(self._done)
            full = self._concurrency * self._batch
            return not self._stopped and new < _NEW * full and new + len(self._due) < _WAITING * full

    def add(self, item: _T) -> None:
        """Add an item to ask. The next turn of a dialogue may be added where there is no room for others."""
        with self._work:
            self._ready.append(_Job(item))
            if len(self._threads) < self._concurrency:
                thread = threading.Thread(target=self._run, name="mmprompt-ask", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._work.notify()

    def next(self) -> tuple[_T, Answer] | None:
        """Wait for an item's answer and return both; None if nothing is left. What ``ask`` raised is raised here."""
        with self._work:
            self._taker_waits = True
            while not (self._done or self._fault or self._finished()):
                self._work.notify()  # what does not fill a batch may begin now
                self._news.wait(_AWAKE)  # a signal may reach another thread; its handler runs in this one
            self._taker_waits = False
            if self._done:
                return self._done.popleft()
            if self._fault is not None:
                raise self._fault
            return None

    def stop(self) -> None:
        """Begin nothing more. What is in flight ends; ``next`` returns it."""
        with self._work:
            self._stopped = True
            self._news.notify()

    def left(self) -> list[_T]:
        """Return the items without an answer."""
        with self._work:
            return [job.item for job in (*self._ready, *[job for *_, job in self._due], *self._flying)]

    def _finished(self) -> bool:
        return not self._flying and (self._stopped or not (self._ready or self._due))

    def _run(self) -> None:
        """Ask for one batch after the other: what each thread does."""
        number, jobs, answers = 0, list[_Job[_T]](), list[tuple[_Job[_T], Answer]]()
        while True:
            with self._work:
                if jobs:
                    self._record(number, answers)
                    self._land(jobs)
                taken = self._taken()
            if taken is None:
                return
            number, jobs = taken
            try:
                answers = list(zip(jobs, self._ask([job.item for job in jobs]), strict=True))
            except BaseException as fault:  # noqa: BLE001  # it belongs to the thread that takes the answers
                answers = []
                with self._work:
                    self._fault = self._fault or fault
                    self._stopped = True

    def _taken(self) -> tuple[int, list[_Job[_T]]] | None:
        """Wait until a batch may begin, and return its number and jobs; None at the end."""
        while not self._closed:
            now = time.monotonic()
            wait = self._wait(now)
            if wait == 0.0:
                return self._begun(now)
            until = _NEVER if wait is None else now + wait
            if until >= self._watched:
                self._work.wait()
                continue
            self._watched = until
            self._work.wait(until - now)
            if self._watched == until:
                self._watched = _NEVER
        self._work.notify()
        return None

    def _wait(self, now: float) -> float | None:
        """Return the seconds until a batch may begin; None if only another thread can change that."""
        while self._due and self._due[0][0] <= now:
            self._ready.appendleft(heapq.heappop(self._due)[2])
        if self._stopped or self._calls >= self._pace.bound:
            return None
        if len(self._ready) >= self._batch or (self._ready and self._taker_waits):
            return self._pace.delay(now)
        return self._due[0][0] - now if self._due else None

    def _begun(self, now: float) -> tuple[int, list[_Job[_T]]]:
        """Take the next jobs and count them as in flight."""
        jobs = [self._ready.popleft() for _ in range(min(self._batch, len(self._ready)))]
        for job in jobs:
            job.begun = job.begun or now
        self._flying += jobs
        self._calls += 1
        self._work.notify()  # another thread may have work too, and one has to watch the clock
        return self._pace.begin(now, len(jobs)), jobs

    def _record(self, number: int, answers: list[tuple[_Job[_T], Answer]]) -> None:
        """Keep answers for the taker; after faults that may pass, put the jobs among those that wait."""
        now = time.monotonic()
        for job, answer in answers:
            job.attempts += answer.attempts
            job.late += answer.kind == "late"
            if answer.kind == "busy":
                self._pace.fall(number)
            elif answer.error is None:
                self._pace.rise()
            gone = answer.kind == "away" and (self._contact is None or self._contact < job.begun)
            late = answer.kind == "late" and self._contact is None
            if answer.kind not in ("away", "late"):
                self._contact, self._lost = now, 0
            if not self._stopped and self._again(job, answer):
                self.retries += 1
                pause = pause_before(job.attempts, FIRST_PAUSE, LONGEST_PAUSE, answer.after)
                heapq.heappush(self._due, (now + pause, id(job), job))
            else:
                self._lost += gone or late
                enough = 1 if gone and self._contact is None else max(self._concurrency, _FIRST_CONTACT)
                hopeless = answer.hopeless or ((gone or late) and self._lost >= enough)
                total = answer._replace(seconds=now - job.begun, attempts=job.attempts, hopeless=hopeless)
                self._done.append((job.item, total))

    def _again(self, job: _Job[_T], answer: Answer) -> bool:
        """Return whether a job gets another attempt."""
        most = _FIRST_CONTACT if answer.kind == "away" and self._contact is None else self._attempts
        return (
            answer.passing
            and job.attempts < min(most, self._attempts)
            and job.late < LATE_ATTEMPTS
            and (answer.after or 0.0) <= LONGEST_WISH
        )

    def _land(self, jobs: list[_Job[_T]]) -> None:
        """Take jobs out of those in flight, and wake the taker."""
        for job in jobs:
            self._flying.remove(job)
        self._calls -= 1
        self._news.notify()
