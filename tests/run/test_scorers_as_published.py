"""Our scorers and published ones over 2,000 replies: equal, or listed here with the reason.

``tests/scorer_record.py`` recorded what the published code says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reply_cases import AnswersCase, anls_cases, choice_cases, digest, vqa_cases

from mmprompt.run.scorers import scorer_of
from mmprompt.run.scorers.choice_reply import choice_in
from mmprompt.run.scorers.vqa import normalised_answer

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "fixtures" / "scores" / "recorded.json").read_text(encoding="utf-8")
)
GIVES_UP = "gives no choice where it finds more than one letter, or none, and then asks a model"
CASE = "reads no lower-case letter"
WORDS = "takes a capital in a choice's own words for a letter"
ALL_WORDS = "reads letters only, and takes the first capital among A to D"
LONG = "gives up on a reply twice as long as all choices"
CHINESE = "finds no letter that a Chinese character stands beside"
PART = "gives up if the text of a choice is part of another's"
CHOICE_DIFFERENCES = {
    "vlmevalkit": {
        "lower-case letter": CASE,
        "Answer: lower-case letter": CASE,
        "the answer is text": f"{PART}; {LONG}",
        "answer element": "does not read markup between < and >",
        "text": WORDS,
        "text in capitals": WORDS,
        "text in quotes": PART,
        "text in a sentence": f"{WORDS}; {PART}",
        "text in a long reply": LONG,
        "reasons, then Answer": WORDS,
        "letter of others, then the answer": GIVES_UP,
        "letter, then reasons with another letter": GIVES_UP,
        "choices repeated, then the answer": GIVES_UP,
        "thought, then letter": GIVES_UP,
        "Chinese: the answer is letter": CHINESE,
        "Chinese: choose letter": CHINESE,
        "Chinese: Answer: letter": CHINESE,
        "letter with because": "reads a letter among the last four words only",
        "not that letter": GIVES_UP,
        "texts of two": WORDS,
        "no letter": "has a letter Z of its own for no answer",
        "refusal": "has a letter Z of its own for no answer",
    },
    "aisbench": {
        "lower-case letter": CASE,
        "letter, colon, text": WORDS,
        "letter, full stop, text": WORDS,
        "Answer: lower-case letter": CASE,
        "the answer is text": ALL_WORDS,
        "the answer is letter and text": WORDS,
        "text": ALL_WORDS,
        "text in capitals": ALL_WORDS,
        "text in quotes": ALL_WORDS,
        "text in a sentence": ALL_WORDS,
        "text in a long reply": ALL_WORDS,
        "thought, then letter": "reads thoughts too, unless another postprocessor removes them",
        "Chinese: the answer is text": ALL_WORDS,
        "letters of two": "takes the last of two letters",
        "texts of two": ALL_WORDS,
    },
}


def test_the_results_were_recorded_for_these_replies() -> None:
    cases = {"choice": choice_cases(), "vqa": vqa_cases(), "anls": anls_cases()}
    assert {kind: RECORDED[kind]["digest"] for kind in cases} == {kind: digest(each) for kind, each in cases.items()}
    lengths = [len(list(each())) for each in (choice_cases, vqa_cases, anls_cases)]
    assert lengths == [1100, 500, 400]


def test_each_reply_is_read_as_it_is_meant() -> None:
    wrong = [case for case in choice_cases() if choice_in(case.reply, case.choices) != case.meant]
    assert wrong == []


@pytest.mark.parametrize("reference", CHOICE_DIFFERENCES)
def test_choices_differ_for_listed_forms_only(reference: str) -> None:
    given = RECORDED["choice"][reference]
    parted = {
        case.form: (case, letter)
        for case, letter in zip(choice_cases(), given, strict=True)
        if letter != ("ABCD"[case.meant] if case.meant >= 0 else "-")
    }
    assert parted.keys() == CHOICE_DIFFERENCES[reference].keys()


def all_the_same(case: AnswersCase, ours: float, theirs: float) -> bool:
    """It normalises neither reply nor answers where all people say the same, so "Yes." then scores 0 for "yes"."""
    return len(set(case.answers)) == 1 and ours > theirs


def period_after_digit(case: AnswersCase, ours: float, theirs: float) -> bool:
    """It keeps a full stop after a digit, which the official evaluation removes."""
    return any(re.search(r"\d\.(?!\d)", text) for text in (case.reply, *case.answers))


def answers_as_they_are(case: AnswersCase, ours: float, theirs: float) -> bool:
    """It leaves case, articles, numbers and contractions of the answers, and normalises those of the reply."""
    return ours > theirs and any(normalised_answer(text) != text for text in (case.reply.strip(), *case.answers))


def long_in_capitals(case: AnswersCase, ours: float, theirs: float) -> bool:
    """It divides by the length in capitals, where ß is two letters."""
    return "ß" in "".join((case.reply, *case.answers)) and abs(ours - theirs) < 0.06


def blanks_counted(case: AnswersCase, ours: float, theirs: float) -> bool:
    """It divides by the lengths with all blanks, and a distance of just half the length still counts 0.5."""
    spread = any(text != " ".join(text.split()) for text in (case.reply, *case.answers))
    return spread or theirs == 0.5 or long_in_capitals(case, ours, theirs)


@pytest.mark.parametrize(
    ("scorer", "cases", "reference", "reason", "count"),
    [
        ("vqa", vqa_cases, "official", all_the_same, 14),
        ("vqa", vqa_cases, "vlmevalkit", period_after_digit, 16),
        ("vqa", vqa_cases, "aisbench", answers_as_they_are, 83),
        ("anls", anls_cases, "anls", long_in_capitals, 15),
        ("anls", anls_cases, "vlmevalkit", blanks_counted, 83),
    ],
)
def test_scores_are_those_of_published_code(
    scorer: str,
    cases: Callable[[], Any],
    reference: str,
    reason: Callable[[AnswersCase, float, float], bool],
    count: int,
) -> None:
    score = scorer_of(scorer)
    ours = [score(case.reply, case.answers, ()) for case in cases()]
    given = RECORDED[scorer][reference]
    parted = [both for both in zip(cases(), ours, given, strict=True) if abs(both[1] - both[2]) > 1e-3]
    assert len(parted) == count
    assert [both for both in parted if not reason(*both)] == []
