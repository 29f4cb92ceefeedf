"""A slice of the fuzzing in every run of the tests; ``tests/fuzz/run.py`` does the whole."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from mutations import KINDS, MODALITY
from run import SLOWEST, feed, files


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_give_media_or_our_errors(kind):
    for number, data in enumerate(files(kind, 40, seed=number_of_the_slice())):
        outcome = feed(data, MODALITY.get(kind, "audio"))
        assert not outcome.faults, f"{kind} {number}: {outcome.faults[0]}"
        assert outcome.slowest < SLOWEST


def number_of_the_slice() -> int:
    """Return the seed of the slice: fixed, so that a failure comes again."""
    return 1


def test_the_mutations_are_the_same_for_the_same_seed():
    assert list(files("png", 20, 7)) == list(files("png", 20, 7))
    assert list(files("png", 20, 7)) != list(files("png", 20, 8))
