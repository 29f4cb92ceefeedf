"""Several requests at once: their bound, their further attempts, and their end."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence

import pytest
from time_taken import GENEROUS

from mmprompt import ServerError
from mmprompt.run import flight as flight_module
from mmprompt.run.flight import Flight
from mmprompt.run.model import Answer
from mmprompt.run.pace import Pace
from mmprompt.run.reply import Reply

ERROR = ServerError("the server is tired")
GOOD = Answer(reply=Reply("yes"))
TIRED = Answer(error=ERROR, passing=True)


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight_module, "FIRST_PAUSE", 0.0)


def answers_of(flight: Flight[int], items: Sequence[int]) -> dict[int, Answer]:
    """The answers by item; each item comes once."""
    waiting = list(reversed(items))
    found: dict[int, Answer] = {}
    while True:
        while waiting and flight.room():
            flight.add(waiting.pop())
        done = flight.next()
        if done is None:
            return found
        assert done[0] not in found
        found[done[0]] = done[1]


class Asked:
    """Answers from a script by item, the last for ever; counts calls at once."""

    def __init__(self, script: dict[int, list[Answer]] | None = None, seconds: float = 0.0) -> None:
        self.script = script or {}
        self.seconds = seconds
        self.at_once = self.most_at_once = 0
        self.calls: list[list[int]] = []
        self.lock = threading.Lock()

    def __call__(self, items: Sequence[int]) -> list[Answer]:
        with self.lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            self.calls.append(list(items))
        time.sleep(self.seconds)
        with self.lock:
            self.at_once -= 1
            return [self._answer(item) for item in items]

    def _answer(self, item: int) -> Answer:
        left = self.script.get(item, [GOOD])
        return left.pop(0) if len(left) > 1 else left[0]


def test_each_item_is_answered_once_and_so_many_are_asked_at_once() -> None:
    ask = Asked(seconds=0.002)
    with Flight(ask, concurrency=8) as flight:
        found = answers_of(flight, range(300))
    assert sorted(found) == list(range(300))
    assert all(answer.reply == "yes" and answer.attempts == 1 for answer in found.values())
    assert 1 < ask.most_at_once <= 8
    assert Counter(item for call in ask.calls for item in call) == Counter(range(300))


def test_an_item_that_waits_holds_up_no_other() -> None:
    order: list[int] = []
    ask = Asked({0: [TIRED._replace(after=0.3), GOOD]})
    with Flight(ask, concurrency=1) as flight:
        for item in range(4):
            flight.add(item)
        while (done := flight.next()) is not None:
            order.append(done[0])
            if done[0] == 0:
                assert done[1].attempts == 2
                assert done[1].seconds >= 0.3
    assert order == [1, 2, 3, 0]


def test_an_item_whose_pause_ends_first_goes_first() -> None:
    ask = Asked({0: [TIRED._replace(after=0.6), GOOD], 1: [TIRED._replace(after=0.3), GOOD]})
    with Flight(ask, concurrency=2) as flight:
        assert list(answers_of(flight, [0, 1])) == [1, 0]


def test_attempts_end(no_pauses: None) -> None:
    ask = Asked({0: [TIRED], 1: [Answer(error=ERROR)], 2: [TIRED._replace(kind="late")]})
    with Flight(ask, concurrency=2, attempts=5) as flight:
        found = answers_of(flight, range(4))
    assert {item: answer.attempts for item, answer in found.items()} == {0: 5, 1: 1, 2: 1, 3: 1}
    assert [found[item].passing for item in range(4)] == [True, False, True, False]
    assert flight.retries == 4


def test_a_server_that_never_answers_in_time_is_given_up_soon() -> None:
    late = TIRED._replace(kind="late")
    for asked, met, given_up in (({}, False, [3]), ({0: [GOOD]}, False, []), ({}, True, [])):
        script = {**{item: [late] for item in range(4)}, **asked}
        with Flight(Asked(script), concurrency=1, met=met) as flight:
            found = answers_of(flight, range(4))
        assert [item for item, answer in found.items() if answer.hopeless] == given_up


def test_a_wish_to_wait_for_long_is_not_granted() -> None:
    with Flight(Asked({0: [TIRED._replace(after=3600.0)]}), concurrency=1) as flight:
        found = answers_of(flight, [0])
    assert found[0].attempts == 1


def test_a_server_that_was_never_there_is_given_up_soon(no_pauses: None) -> None:
    with Flight(Asked({0: [TIRED._replace(kind="away")]}), concurrency=1) as flight:
        answer = answers_of(flight, [0])[0]
    assert (answer.attempts, answer.hopeless) == (4, True)


def test_a_server_that_was_there_meanwhile_is_not_given_up(no_pauses: None) -> None:
    away = TIRED._replace(kind="away")
    with Flight(Asked({0: [TIRED, away]}), concurrency=1) as flight:
        answer = answers_of(flight, [0])[0]
    assert (answer.attempts, answer.hopeless) == (10, False)


def test_a_server_that_is_gone_is_given_up_and_one_that_answers_all_but_a_few_is_not(no_pauses: None) -> None:
    away = TIRED._replace(kind="away")
    for concurrency, count, given_up in ((1, 3, 0), (1, 4, 1), (8, 7, 0), (8, 8, 1)):
        with Flight(Asked({item: [away] for item in range(1, count + 1)}), concurrency=concurrency) as flight:
            assert not answers_of(flight, [0])[0].hopeless
            found = answers_of(flight, range(1, count + 1))
        assert {answer.attempts for answer in found.values()} == {10}
        assert sum(answer.hopeless for answer in found.values()) == given_up


def test_fewer_are_in_flight_while_the_server_pushes_back_and_more_again_after() -> None:
    ask = Asked({item: [TIRED._replace(kind="busy", after=0.01), GOOD] for item in range(60)}, seconds=0.001)
    with Flight(ask, concurrency=16) as flight:
        answers_of(flight, range(60))
        low = flight.least
        ask.most_at_once = 0
        answers_of(flight, range(100, 600))
    assert low <= 4
    assert ask.most_at_once > low


def test_the_bound_falls_once_a_flight_and_rises_by_one_a_flight() -> None:
    pace = Pace(10)
    flight = [pace.begin(0.0) for _ in range(10)]
    for number in flight:
        pace.fall(number)
    assert pace.bound == 8
    for _ in range(9):
        pace.rise()
    assert pace.bound == 9
    pace.fall(pace.begin(0.0))
    assert pace.bound == 7
    for _ in range(1000):
        pace.rise()
    assert (pace.bound, pace.least) == (10, 7)
    for _ in range(20):
        pace.fall(pace.begin(0.0))
    assert pace.bound == 1


def test_no_more_begin_in_a_minute_than_the_caller_allows() -> None:
    ask = Asked()
    begun = time.monotonic()
    with Flight(ask, concurrency=8, rpm=600) as flight:
        answers_of(flight, range(6))
    assert time.monotonic() - begun >= 0.5


def test_batches_are_full_except_for_the_last() -> None:
    ask = Asked(seconds=0.005)
    with Flight(ask, concurrency=1, batch=4) as flight:
        answers_of(flight, range(22))
    assert [len(call) for call in ask.calls] == [4, 4, 4, 4, 4, 2]


def test_memory_holds_what_is_in_flight_or_about_to_be() -> None:
    waiting = TIRED._replace(after=60.0)
    hold = threading.Event()

    def ask(items: Sequence[int]) -> list[Answer]:
        if items[0] < 20:
            return [waiting]
        hold.wait(GENEROUS)
        return [GOOD]

    with Flight(ask, concurrency=2) as flight:
        count = 0
        end = time.monotonic() + GENEROUS
        while time.monotonic() < end:
            if flight.room():
                flight.add(count)
                count += 1
                if count == 8:
                    end = time.monotonic() + 0.2  # one more would come at once
            else:
                time.sleep(0.001)
        assert count == 8
        assert len(flight.left()) == 8
        flight.stop()
        hold.set()


def test_a_turn_may_follow_where_there_is_no_room_for_others() -> None:
    ask = Asked()
    with Flight(ask, concurrency=1) as flight:
        flight.add(0)
        seen = 0
        while (done := flight.next()) is not None:
            seen += 1
            if done[0] < 20:
                flight.add(done[0] + 1)
    assert seen == 21


def test_stop_ends_what_is_in_flight_and_begins_nothing_more() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def ask(items: Sequence[int]) -> list[Answer]:
        begun.set()
        assert go_on.wait(GENEROUS)
        return [GOOD] * len(items)

    with Flight(ask, concurrency=1) as flight:
        for item in range(3):
            flight.add(item)
        assert begun.wait(GENEROUS)
        flight.stop()
        assert not flight.room()
        go_on.set()
        done = flight.next()
        assert done is not None
        assert done[0] == 0
        assert flight.next() is None
        assert flight.left() == [1, 2]


def test_an_exception_does_not_wait_for_what_is_in_flight() -> None:
    hold = threading.Event()

    def ask(items: Sequence[int]) -> list[Answer]:
        hold.wait(GENEROUS)
        return [GOOD] * len(items)

    def interrupted() -> None:
        with Flight(ask, concurrency=2) as flight:
            flight.add(0)
            raise KeyboardInterrupt

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - begun < GENEROUS / 2
    hold.set()


def test_what_asking_raises_reaches_the_one_who_takes_the_answers() -> None:
    def refuse(items: Sequence[int]) -> list[Answer]:
        raise ServerError(f"no log-probabilities for {len(items)}")

    with pytest.raises(ServerError, match="no log-probabilities for 1"), Flight(refuse, concurrency=2) as flight:
        answers_of(flight, range(5))


def test_too_few_answers_are_an_error_and_no_wait_for_ever() -> None:
    with pytest.raises(ValueError, match="zip"), Flight(lambda items: [], concurrency=1) as flight:
        answers_of(flight, [0])
