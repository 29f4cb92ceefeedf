from __future__ import annotations

from collections.abc import Iterator
from multiprocessing import resource_tracker

import pytest
from leaks import held, left_behind


@pytest.fixture(scope="session")
def _what_stays_is_there() -> None:
    """Start what libraries start once and keep: the process that multiprocessing has beside every program."""
    resource_tracker.ensure_running()


@pytest.fixture(autouse=True)
def nothing_is_left_behind(_what_stays_is_there: None) -> Iterator[None]:
    """Hold that a test leaves no descriptor, thread or child, once its own fixtures are gone."""
    before = held()
    yield
    left = left_behind(before)
    if left:
        pytest.fail(f"left behind: {left}", pytrace=False)
