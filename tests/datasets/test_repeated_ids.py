from __future__ import annotations

import random
import tracemalloc

import pytest
from time_taken import processor_seconds

from mmprompt.datasets import repeated_ids as ids
from mmprompt.datasets.repeated_ids import RepeatedIds


def expected_repeats(names):
    first: dict[object, int] = {}
    found = []
    for line, name in enumerate(names, 1):
        if name in first:
            found.append((line, first[name]))
        else:
            first[name] = line
    return found


def repeats_of(names):
    with RepeatedIds() as seen:
        for line, name in enumerate(names, 1):
            seen.add(name, line)
        return list(seen.repeats())


def test_repeats_come_with_the_line_and_the_first_line():
    assert repeats_of(["a", "b", "a", "c", "a", "b"]) == [(3, 1), (5, 1), (6, 2)]
    assert repeats_of([]) == []


def test_ids_of_different_type_are_different():
    assert repeats_of([1, "1", True, 1.0, None, "None", "true", [1], "[1]", [1.0], {"a": 1}, '{"a": 1}']) == []
    assert repeats_of([0, "", 0.0, False, None]) == []
    assert repeats_of([-1, -2, 1 << 61, (1 << 61) - 1, (1 << 61) - 2, 0, 1 << 100, -(1 << 70)]) == []
    assert repeats_of([[1, "x"], [1, "x"], -7, -7, 1 << 80, 1 << 80]) == [(2, 1), (4, 3), (6, 5)]


def test_rows_on_one_line_are_told_apart():
    with RepeatedIds() as seen:
        for name in ("a", "b", "a"):
            seen.add(name, 1)
        assert list(seen.repeats()) == [(1, 1)]


@pytest.mark.parametrize("partition", [1 << 20, 1000, 37])
def test_spilled_ids_give_the_same_repeats(monkeypatch, partition):
    monkeypatch.setattr(ids, "_BATCH", 64)
    monkeypatch.setattr(ids, "_SPILL", 256)
    monkeypatch.setattr(ids, "_PARTITION", partition)
    draw = random.Random(7)
    names = [draw.choice([n * 64, f"q-{n}", -n]) for n in (draw.randrange(3000) for _ in range(5000))]
    monkeypatch.setattr(ids, "_SUSPECTS", 100)
    monkeypatch.setattr(ids, "_WAITING", 5 * partition)
    assert repeats_of(names) == expected_repeats(names)


def test_repeats_can_be_asked_for_again_after_more_ids(monkeypatch):
    monkeypatch.setattr(ids, "_BATCH", 2)
    monkeypatch.setattr(ids, "_SPILL", 4)
    with RepeatedIds() as seen:
        for line, name in enumerate("abcdea", 1):
            seen.add(name, line)
        assert list(seen.repeats()) == [(6, 1)]
        for line, name in enumerate("xyzab", 7):
            seen.add(name, line)
        assert list(seen.repeats()) == [(6, 1), (10, 1), (11, 2)]


def test_closing_forgets_and_releases_the_file(monkeypatch):
    monkeypatch.setattr(ids, "_BATCH", 1)
    monkeypatch.setattr(ids, "_SPILL", 2)
    seen = RepeatedIds()
    for line in range(5):
        seen.add("a", line)
    file = seen._file
    seen.close()
    assert file.closed
    assert list(seen.repeats()) == []


def test_memory_is_bounded_over_many_ids():
    tracemalloc.start()
    try:
        with RepeatedIds() as seen:
            for n in range(40_000):
                seen.add(n % 39_999, n)
            assert tracemalloc.get_traced_memory()[1] < 3_000_000  # a dict takes 4
            assert list(seen.repeats()) == [(39_999, 0)]
    finally:
        tracemalloc.stop()


def test_adding_an_id_costs_microseconds_at_most():
    def add() -> None:
        for line in range(20_000):
            seen.add("q-17", line)

    with RepeatedIds() as seen:
        assert processor_seconds(add, enough=0.04) / 20_000 < 2e-5
