"""A slice of the fuzzing in every run of the tests; ``tests/fuzz/run.py`` does the whole."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from mutations import KINDS, MODALITY, originals
from run import SLOWEST, feed, files
from structures import CONTAINERS


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_give_media_or_our_errors(kind):
    for number, data in enumerate(files(kind, 40, seed=number_of_the_slice())):
        outcome = feed(data, MODALITY.get(kind, "audio"))
        assert not outcome.faults, f"{kind} {number}: {outcome.faults[0]}"
        assert outcome.slowest < SLOWEST


@pytest.mark.parametrize("kind", CONTAINERS)
def test_files_of_odd_parts_give_media_or_our_errors(kind):
    for number, data in enumerate(files(kind, 40, number_of_the_slice(), "structured")):
        outcome = feed(data, MODALITY.get(kind, "audio"))
        assert not outcome.faults, f"{kind} {number}: {outcome.faults[0]}"
        assert outcome.slowest < SLOWEST


@pytest.mark.parametrize("kind", CONTAINERS)
def test_a_file_is_the_same_when_its_parts_are_put_together_again(kind):
    for data in originals().get(kind, []):
        again = CONTAINERS[kind].file_of(CONTAINERS[kind].parts_of(data))
        assert feed(again, MODALITY.get(kind, "audio"))[:2] == feed(data, MODALITY.get(kind, "audio"))[:2]
        assert again == data


def number_of_the_slice() -> int:
    """Return the seed of the slice: fixed, so that a failure comes again."""
    return 1


def test_the_mutations_are_the_same_for_the_same_seed():
    assert list(files("png", 20, 7)) == list(files("png", 20, 7))
    assert list(files("png", 20, 7)) != list(files("png", 20, 8))
    assert list(files("png", 20, 7, "structured")) == list(files("png", 20, 7, "structured"))
