"""The scorers, by what is written of each; replies that published code scores are in another file."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence
from typing import Any

import pytest

from mmprompt import TaskError
from mmprompt.run.scorers import answers_of, scorer_of
from mmprompt.run.scorers.anls import edit_distance
from mmprompt.run.scorers.choice_reply import choice_in
from mmprompt.run.scorers.number import last_number
from mmprompt.tasks.config import SCORERS

ANIMALS = ("cat", "dog", "red panda", "panda")


@pytest.mark.parametrize(
    ("scorer", "reply", "answers", "score"),
    [
        ("exact", " PARIS. ", ["Paris"], 1), ("exact", "Paris..", ["Paris"], 0), ("exact", "caf\u00e9", ["cafe\u0301"], 1),
        ("exact", "Stra\u00dfe", ["STRASSE"], 1), ("exact", "no", ["yes", "no"], 1), ("exact", "12", [12], 1),
        ("exact", "true", [True], 1), ("exact", "yes", [{"answer": "yes", "id": 1}], 1), ("exact", "", [""], 1),
        ("contains", "It is Paris, of course", ["paris"], 1), ("contains", "a parish", ["paris"], 0),
        ("contains", "in New York.", ["Rome", "new york"], 1), ("contains", "3.5 m", ["3"], 0), ("contains", "1,300", ["300"], 0),
        ("contains", "exactly 3.", [3], 1), ("contains", "\u8fd9\u662f\u732b\u3002", ["\u732b"], 1), ("contains", "anything", [""], 0),
        ("contains", "(C++)", ["c++"], 1), ("contains", "", [""], 1),
        ("number", "6 x 7 = 42.0", [42], 1), ("number", "1,234,567.5", ["1234567.5"], 1), ("number", "-3", [3], 0),
        ("number", "\u22123", [-3], 1), ("number", "7-3", [3], 1), ("number", "1e3 m", ["1000"], 1), ("number", "#### 72", ["so 72"], 1),
        ("number", "1000000.5", [1000000], 1), ("number", "1000002", [1000000], 0), ("number", "none", [0], 0),
        ("number", "5", ["five"], 0), ("number", "room A12", [12], 0), ("number", "\u5171\u67093\u53ea", ["3"], 1),
        ("number", ".5", [0.5], 1), ("number", "0.30000001", ["0.3"], 1),
        ("anls", "Smyth", ["Smith"], 0.8), ("anls", "ab", ["ax"], 0), ("anls", "  A  B ", ["a b"], 1), ("anls", "", [""], 1),
        ("vqa", "Yes.", ["yes"] * 3 + ["no"] * 7, 0.9), ("vqa", "no", ["yes"] * 3 + ["no"] * 7, 1), ("vqa", "yes", ["yes"], 1),
        ("vqa", "two", ["2", "3"], 1), ("vqa", "yes", ["yes"] * 2 + ["no"] * 8, 0.6), ("vqa", "2,000", ["2000"] * 10, 1),
    ],
)  # fmt: skip
def test_a_reply_is_scored_by_its_answers(scorer: str, reply: str, answers: Sequence[Any], score: float) -> None:
    assert scorer_of(scorer)(reply, answers, ()) == pytest.approx(score)


@pytest.mark.parametrize(
    ("reply", "number"),
    [
        ("A dog", 1), ("A", 0), ("a panda", 3), ("It's a red panda", 2), ("B or C", -1), ("I think it is either cat or dog", -1),
        ("A. cat is wrong.\nB. dog is right\n\nAnswer: B", 1), ("The answer is not B", -1), ("The cat sits.\nIt sees a dog.\nSo: dog", 1),
        ("Both A and B", -1), ("B\n\nA is wrong: there is no cat, dog or panda", 1), ("Answer: (c)", 2), ("The answer is a dog", 1),
        ("I see that the answer should be D", 3), ("Option B is correct", 1), ("<answer>\n**C**\n</answer>", 2), ("E", -1),
        ("<think>A or B</think>C", 2), ("<think>The answer is B, or", -1), ("B <think>or C?", 1),
    ],
)  # fmt: skip
def test_a_reply_names_a_choice(reply: str, number: int) -> None:
    assert choice_in(reply, ANIMALS) == number


@pytest.mark.parametrize(
    ("answer", "index_base", "reply", "score"),
    [
        ("B", None, "dog", 1), ("(b)", None, "dog", 1), ("dog", None, "B", 1), (1, None, "dog", 1), (1, 1, "cat", 1), (1, 0, "dog", 1),
        ("1", 1, "cat", 1), (4, None, "panda", 0), (4, 1, "panda", 1), (0, 1, "cat", 0), (["A", "B"], None, "dog", 1),
        ("A, C", None, "A and C", 1), ("AC", None, "Answer: A, C", 1), ("AC", None, "A", 0), ("AC", None, "A, B, C", 0),
        ("blue", None, "blue", 0), (1.0, None, "dog", 1),
    ],
)  # fmt: skip
def test_a_right_choice_is_a_letter_a_text_or_a_number(
    answer: Any, index_base: int | None, reply: str, score: float
) -> None:
    assert scorer_of("choice", index_base)(reply, answers_of(answer), ANIMALS) == score


def test_a_letter_comes_before_a_text() -> None:
    assert scorer_of("choice")("Answer: A", ["A"], ["B", "A"]) == 1
    assert scorer_of("choice")("the second", ["A"], ["the first", "the second"]) == 0


def test_without_choices_the_answer_is_a_letter() -> None:
    score = scorer_of("choice")
    assert [score(reply, ["b"], ()) for reply in ("Answer: B", "(B) the dog", "C", "")] == [1, 1, 0, 0]
    assert score("G", ["G"], ()) == 1
    assert score("G", [""], ()) == 0


def test_a_row_has_the_scorer_that_goes_with_it_and_a_function_is_one() -> None:
    score = scorer_of(None)
    assert score("It is B", ["B"], ANIMALS) == 1
    assert score("It is B", ["B"], ()) == 0
    assert scorer_of(lambda reply, answers, choices: len(reply) / 10)("12345", [], []) == 0.5
    with pytest.raises(TaskError, match="did you mean 'choice'"):
        scorer_of("choices")


def test_edit_distance_is_that_of_the_table() -> None:
    chance = random.Random(3)
    for _ in range(500):
        one, other = ("".join(chance.choices("ab\u00df", k=int(chance.random() * 12))) for _ in range(2))
        row = list(range(len(other) + 1))
        for at, character in enumerate(one, 1):
            above, row = row, [at]
            for place, another in enumerate(other, 1):
                row.append(min(above[place] + 1, row[-1] + 1, above[place - 1] + (character != another)))
        assert edit_distance(one, other) == row[-1], (one, other)


def test_anls_is_the_same_without_rapidfuzz(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rapidfuzz")
    pairs = [("Philip Moris", "Philip Morris"), ("x" * 300, "x" * 200 + "y" * 90), ("", "a"), ("Straße", "Strasse")]
    score = scorer_of("anls")
    fast = [score(one, [other], ()) for one, other in pairs]
    monkeypatch.setitem(sys.modules, "rapidfuzz.distance", None)
    assert [score(one, [other], ()) for one, other in pairs] == fast


HOSTILE = [
    "a" * 10**6, "A " * 500_000, "answer " * 140_000, "answer is " * 100_000, "answer" + ":" * 10**6, "(" * 10**6,
    "1," * 500_000, "1,111" * 200_000, "1" * 10**6, "." * 10**6, " \n" * 500_000, "*`$" * 330_000, "not A " * 160_000,
    "A. cat\n" * 140_000, "1e" * 500_000, "</think>" * 120_000, "dog " * 250_000, "\u2019" * 10**6, "A[" * 500_000,
    "don't " * 160_000, "\u7b54\u6848" * 400_000, "\0" * 10**6,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("scorer", SCORERS)
def test_a_hostile_reply_takes_time_in_proportion_to_its_length(scorer: str) -> None:
    score = scorer_of(scorer)
    for reply in HOSTILE:
        began = time.process_time()
        score(reply, ["B", "the a a a b", "1"], ANIMALS)
        assert time.process_time() - began < 10, reply[:20]


def test_the_last_number_of_many_digits_is_read() -> None:
    assert last_number("9" * 10_000) == float("inf")
    assert last_number("1e999999999") == float("inf")
