from itertools import islice

import numpy as np

from mmprompt.icl.ranking import best_first


def test_the_highest_come_first_and_equal_scores_in_their_order():
    assert list(best_first(np.array([1.0, 3.0, 2.0, 3.0, -1.0]))) == [1, 3, 2, 0, 4]
    assert list(best_first(np.array([]))) == []


def test_any_number_of_the_best_is_the_head_of_the_full_order():
    scores = np.random.default_rng(0).integers(0, 5, size=2000).astype(float)
    full = np.argsort(-scores, kind="stable").tolist()
    for count in (1, 15, 16, 17, 128, 129, 2000):
        assert list(islice(best_first(scores), count)) == full[:count]


def test_scores_that_differ_by_rounding_only_are_judged_by_the_exact_ones():
    noise = np.random.default_rng(0).integers(-4, 5, size=1000) * 2.0**-52
    assert list(islice(best_first(1 + noise, lambda near: np.ones(len(near))), 20)) == list(range(20))
