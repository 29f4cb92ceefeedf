"""The scorer ``vqa``: the accuracy of the VQA challenge (Antol et al., 2015), as its official evaluation has it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mmprompt.run.scorers.texts import text_of
from mmprompt.targets.json_values import JSONValue

_MARKS = ';/[]"{}()=+\\_-><@`,?!'
_NUMBER_WITH_COMMA = re.compile(r"\d,\d")
_PERIOD = re.compile(r"\.(?!\d)")
_ARTICLES = frozenset(("a", "an", "the"))
_NUMBERS = {"none": "0", **{name: str(n) for n, name in enumerate(
    ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"))}}  # fmt: skip
_CONTRACTIONS = """
    ain't aren't can't could've couldn't couldn't've didn't doesn't don't hadn't hadn't've hasn't haven't he'd he'd've
    he's how'd how'll how's isn't it'd it'd've it'll ma'am mightn't mightn't've might've mustn't must've needn't not've
    o'clock oughtn't 'ow's'at shan't she'd've should've shouldn't shouldn't've somebody'd've somebody'll somebody's
    someone'd someone'd've someone'll someone's something'd something'd've something'll that's there'd there'd've
    there're there's they'd they'd've they'll they're they've 'twas wasn't we'd've we've weren't what'll what're what's
    what've when's where'd where's where've who'd who'd've who'll who's who've why'll why're why's won't would've
    wouldn't wouldn't've y'all y'all'll y'all'd've you'd you'd've you'll you're you've
"""
_PLACES = [(word, at) for word in _CONTRACTIONS.split() for at, mark in enumerate(word) if mark == "'"]
_WHOLE = {word[:at] + word[at + 1 :]: word for word, at in _PLACES} | {"somebody'd": "somebodyd"}
"""Contractions by how they read with one apostrophe left out, and the one that the evaluation writes without."""

_ENOUGH = 3
"""So many other annotators with the same answer make it right."""


def vqa(prediction: str, answers: Sequence[JSONValue], choices: Sequence[str] = ()) -> float:  # noqa: ARG001  # as all
    """Return how far people agree with the reply: the share of ``min(1, n / 3)``, n of the others having said it.

    Each annotator is left out once, and the mean counts. Reply and answers are normalised as in the official
    evaluation: articles, punctuation, numbers as words, contractions. With fewer than four answers, where three others
    cannot agree, the reply counts 1 if it equals one of them.

    >>> people = ["yes"] * 3 + ["no"] * 7
    >>> round(vqa("Yes.", people), 3), vqa("No", people), vqa("maybe", people)
    (0.9, 1.0, 0.0)
    """
    said = normalised_answer(prediction)
    agree = sum([said == normalised_answer(text_of(answer)) for answer in answers])
    if len(answers) <= _ENOUGH:
        return float(agree > 0)
    without = min(1.0, (agree - 1) / _ENOUGH) if agree else 0.0
    return (agree * without + (len(answers) - agree) * min(1.0, agree / _ENOUGH)) / len(answers)


def normalised_answer(text: str) -> str:
    """Return a text as the official evaluation compares it.

    >>> normalised_answer("The 2,000 dogs dont bark!")
    "2000 dogs don't bark"
    """
    text = text.replace("\n", " ").replace("\t", " ").strip()
    joined = _NUMBER_WITH_COMMA.search(text) is not None
    kept = text
    for mark in _MARKS:
        removed = joined or f"{mark} " in text or f" {mark}" in text
        kept = kept.replace(mark, "" if removed else " ")
    words = [_NUMBERS.get(word, word) for word in _PERIOD.sub("", kept).lower().split()]
    return " ".join([_WHOLE.get(word, word) for word in words if word not in _ARTICLES])
