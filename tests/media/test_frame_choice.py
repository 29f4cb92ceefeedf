"""Which frames are chosen: arithmetic over times, against the plainest definition."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmprompt.errors import SourceError
from mmprompt.media.video.frame_choice import FrameChoice, Timeline, choose, even_places


def even(count, tick=Fraction(1, 25), step=1):
    return Timeline([number * step for number in range(count)], count * step, tick, [0])


@pytest.mark.parametrize(("size", "count"), [(300, 8), (300, 32), (97, 5), (8, 8), (7, 3), (1000, 999)])
def test_a_count_takes_what_linspace_names_where_the_rate_is_constant(size, count):
    expected = np.linspace(0, size - 1, count, dtype=int).tolist()
    assert choose(FrameChoice(count), even(size)) == expected
    assert choose(FrameChoice(count), even(size, Fraction(1, 90_000), 3600)) == expected


def test_a_count_of_one_is_the_middle_and_more_than_there_are_gives_all():
    assert choose(FrameChoice(1), even(9)) == [4]
    assert choose(FrameChoice(50), even(9)) == list(range(9))
    assert choose(FrameChoice(5), even(1)) == [0]


def test_a_clock_that_rounds_does_not_shift_frames():
    """Matroska counts milliseconds: 30 frames a second begin at 0, 33, 67, 100 …."""
    line = Timeline([round(number * 1000 / 30) for number in range(301)], 10_033, Fraction(1, 1000), [0])
    assert choose(FrameChoice(16), line) == np.linspace(0, 300, 16, dtype=int).tolist()
    assert choose(FrameChoice(fps=10), line) == list(range(0, 301, 3))


def test_fps_ends_before_the_end_of_the_video():
    assert choose(FrameChoice(fps=1), even(250)) == list(range(0, 250, 25))
    assert choose(FrameChoice(fps=0.01), even(250)) == [0]
    assert choose(FrameChoice(fps=1e9), even(250)) == list(range(250))


def test_a_frame_that_stands_long_is_given_once():
    slides = Timeline([0, 2000, 9000], 12_000, Fraction(1, 1000), [0])
    assert choose(FrameChoice(fps=2), slides) == [0, 1, 2]
    assert choose(FrameChoice(10), slides) == [0, 1, 2]
    assert choose(FrameChoice(3), slides) == [0, 1, 2]
    assert choose(FrameChoice(fps=1 / 8), slides) == [0, 1]


def test_times_give_one_frame_each_in_the_order_asked():
    assert choose(FrameChoice(times=(1.0, 0.0, 0.999, 1.0, 10.0)), even(250)) == [25, 0, 24, 25, 249]


def test_the_seconds_of_a_frame_ask_for_that_frame():
    line = even(91, Fraction(1001, 30_000))
    seconds = tuple(line.seconds(index) for index in range(91))
    assert choose(FrameChoice(times=seconds), line) == list(range(91))
    assert choose(FrameChoice(times=tuple(round(at, 6) for at in seconds)), line) == list(range(91))


def test_a_time_after_the_end_is_an_error_that_says_how_long_the_video_is():
    with pytest.raises(SourceError, match=r"at 10\.5 s nothing is shown: the video lasts 10\.000 s"):
        choose(FrameChoice(times=(10.5,)), even(250))


def test_key_frames_are_taken_evenly_where_there_are_more_than_asked():
    line = Timeline(range(100), 100, Fraction(1, 25), range(0, 100, 10))
    assert choose(FrameChoice(key_frames=True), line) == list(range(0, 100, 10))
    assert choose(FrameChoice(3, key_frames=True), line) == [0, 40, 90]
    assert choose(FrameChoice(4, fps=25), line) == [0, 33, 66, 99]


@given(
    gaps=st.lists(st.integers(2, 5000), min_size=1, max_size=40),
    step=st.fractions(Fraction(1, 50), 60, max_denominator=1000),
)
def test_a_grid_of_times_gives_the_frames_shown_at_them(gaps, step):
    """Against the definition: go through all times, take what began last; 1 ms of grace, as files round."""
    starts = np.cumsum([0, *gaps[:-1]]).tolist()
    line = Timeline(starts, sum(gaps), Fraction(1, 1000), [0])
    fps = float(1 / step)
    expected: list[int] = []
    number = 0
    while number == 0 or Fraction(number) / Fraction(str(fps)) * 1000 <= line.end - 1:
        at = Fraction(number) / Fraction(str(fps)) * 1000
        shown = max(index for index, start in enumerate(starts) if start <= at + 1)
        if shown not in expected:
            expected.append(shown)
        number += 1
    assert choose(FrameChoice(fps=fps), line) == expected


@given(st.integers(0, 60), st.integers(1, 70))
def test_even_places_are_distinct_and_hold_both_ends(size, count):
    places = even_places(size, count)
    assert places == sorted(set(places))
    assert len(places) == min(size, count)
    if size and count > 1:
        assert (places[0], places[-1]) == (0, size - 1)
