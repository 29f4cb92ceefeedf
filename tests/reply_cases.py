"""Replies as models give them, made by a fixed seed, whose scores by published code are recorded.

Each is made from a form, such as ``The answer is {letter}.``, so that a difference can be explained by its form.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

CHOICES = [
    ("cat", "dog", "horse", "sheep"),
    ("red", "dark red", "light blue", "green"),
    ("On the left of the man", "In front of the car", "Behind the wooden bench", "Above the door"),
    ("1", "2", "3", "4"),
    ("yes", "no"),
    ("Vitamin C", "Vitamin D", "iron", "calcium"),
    ("The bus stops at the station.", "The bus leaves the station.", "The bus is empty.", "Nobody waits for the bus."),
    ("Paris", "London", "New York", "Rome"),
    ("猫", "狗", "马", "羊"),
    ("0.5 m", "1.5 m", "2.5 m", "10 m"),
    ("a slice of bread", "a glass of water", "an apple", "a bowl of soup"),
]

CHOICE_FORMS = {
    "letter": "{L}",
    "lower-case letter": "{l}",
    "letter in parentheses": "({L})",
    "letter and full stop": "{L}.",
    "letter and parenthesis": "{L})",
    "letter in brackets": "[{L}]",
    "letter, colon, text": "{L}: {T}",
    "letter, full stop, text": "{L}. {T}",
    "letter in parentheses, text": "({L}) {T}",
    "Answer: letter": "Answer: {L}",
    "Answer: letter and full stop": "Answer: {L}.",
    "Answer: lower-case letter": "answer: {l}",
    "Answer on a new line": "Answer:\n{L}",
    "the answer is letter": "The answer is {L}.",
    "the answer is letter in parentheses": "The answer is ({L}).",
    "the answer is text": "The answer is {T}.",
    "the answer is letter and text": "The correct answer is {L}. {T}",
    "the answer is option letter": "The correct answer is option {L}.",
    "option letter": "Option {L}",
    "the correct option is letter": "The correct option is {L}.",
    "bold letter": "**{L}**",
    "bold answer": "**Answer:** {L}",
    "boxed letter": "The answer is $\\boxed{{{L}}}$.",
    "answer element": "<answer>{L}</answer>",
    "text": "{T}",
    "text in capitals": "{U}",
    "text in quotes": '"{T}"',
    "text in a sentence": "It is {T}",
    "text in a long reply": "The picture was taken outdoors on a sunny day, and after looking at all of its parts with care I am sure that what is asked about, seen from here and in this light, at noon, can only be {T}",
    "reasons, then Answer": "Let us look at the picture. {O} does not fit: it cannot be seen anywhere.\n\nAnswer: {L}",
    "letter of others, then the answer": "{K} is wrong, since it shows something else. The answer is {L}.",
    "letter, then reasons with another letter": "{L}. {K} is wrong, since it shows something else.",
    "choices repeated, then the answer": "A. first\nB. second\nThe answer is {L}.",
    "thought, then letter": "<think>Is it {K}? No.</think>{L}",
    "Chinese: the answer is letter": "答案是{L}。",
    "Chinese: choose letter": "选{L}",
    "Chinese: Answer: letter": "答案：{L}",
    "Chinese: the answer is text": "答案是{T}。",
    "letter with because": "{L} because of its shape",
    "letter, comma, text": "{L}, {T}",
    "lead-in and letter": "Sure! {L}",
    "final answer": "Final answer: {L}",
    "I choose letter": "I would choose {L}.",
    "not that letter": "Not {K}. It is {L}.",
    "letters of two": "Either {L} or {K}",
    "texts of two": "Either {T} or {O}",
    "no letter": "Z",
    "refusal": "Sorry, I can't help with images of people yet.",
    "cannot tell": "I cannot tell from this picture",
    "empty": "",
}
NAMES_NONE = frozenset(("letters of two", "texts of two", "no letter", "refusal", "cannot tell", "empty"))

_WORDS = [
    "yes", "no", "2", "two", "a dog", "the dog", "dog", "dont know", "don't know", "1,000", "1000", "blue/white", "blue and white", "St. Mary",
    "st mary", "7:30", "t-shirt", "t shirt", "tshirt", "none", "0", "10", "ten", "Nike", "nike.", "coca cola", "coca-cola", "it's raining",
    "its raining", "2.5", "women's", "an apple", "apple!", "left", "to the left", "$5.00", "5 dollars", "Mr. T", "3.", "red, white and blue",
]  # fmt: skip
_TEXTS = [
    "University of California", "$1,234.56", "12/06/1998", "Dr. A. Smith", "Philip Morris", "0.28", "ITC Limited", "a", "Réunion",
    "the Williamsburg Hotel", "N/A", "Q3 2004", "10:30 - 11:15 a.m.", "Straße 5", "Brown & Williamson", "x", "R&D", "Paul  Smith",
]  # fmt: skip


class ChoiceCase(NamedTuple):
    form: str
    reply: str
    choices: tuple[str, ...]
    meant: int
    """The choice that the reply means, -1 if it means none."""


class AnswersCase(NamedTuple):
    form: str
    reply: str
    answers: tuple[str, ...]


def choice_cases() -> Iterator[ChoiceCase]:
    """1,100 replies: each form with each set of choices, twice."""
    chance = random.Random(14)
    for form, text in CHOICE_FORMS.items():
        for choices in CHOICES:
            for _ in range(2):
                meant = int(chance.random() * len(choices))
                other = (meant + 1 + int(chance.random() * (len(choices) - 1))) % len(choices)
                letter, right = "ABCD"[meant], choices[meant]
                parts = {"L": letter, "l": letter.lower(), "T": right, "U": right.upper()}
                reply = text.format(**parts, O=choices[other], K="ABCD"[other])
                yield ChoiceCase(form, reply, choices, -1 if form in NAMES_NONE else meant)


def vqa_cases() -> Iterator[AnswersCase]:
    """500 replies with the answers of ten people, of whom some or all say the same."""
    chance = random.Random(15)
    dressed = {
        "plain": "{}",
        "capital": "{}.",
        "sentence": "It is {}!",
        "article": "the {}",
        "lines": " {}\n",
        "comma": "{}, maybe",
    }
    for number in range(500):
        said = _pick(chance, _WORDS)
        people = [said if chance.random() < number % 11 / 10 else _pick(chance, _WORDS) for _ in range(10)]
        form = _pick(chance, list(dressed))
        reply = dressed[form].format(_pick(chance, [said, said, _pick(chance, _WORDS)]))
        yield AnswersCase(form, reply.capitalize() if form == "capital" else reply, tuple(people))


def anls_cases() -> Iterator[AnswersCase]:
    """400 replies that are an answer with some characters changed, added or left out."""
    chance = random.Random(16)
    for number in range(400):
        answers = tuple(_pick(chance, _TEXTS) for _ in range(1 + number % 3))
        reply = list(_pick(chance, answers) if number % 10 else _pick(chance, _TEXTS))
        changes = int(chance.random() * (len(reply) * 0.8 + 1))
        for _ in range(changes):
            at = int(chance.random() * len(reply)) if reply else 0
            reply[at : at + int(chance.random() * 2)] = _pick(chance, ["", "e", " ", "7", "E"])
        yield AnswersCase("edited" if changes else "plain", "".join(reply), answers)


def _pick(chance: random.Random, values: Any) -> Any:
    return values[int(chance.random() * len(values))]


def digest(cases: Iterator[Any]) -> str:
    """The hash of cases: results are recorded for exactly these."""
    return hashlib.sha256(json.dumps([tuple(case) for case in cases]).encode()).hexdigest()
