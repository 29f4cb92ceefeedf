"""Rules on the answer and the choices of a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from string import ascii_uppercase

from mmprompt.check.answer_forms import choice_of, readings_of
from mmprompt.check.facts import kind_of
from mmprompt.check.rule import CheckedRow, Fix, Hit, dataset_rule, row_rule
from mmprompt.check.store import Store
from mmprompt.datasets.choices import MISSING, without_letters
from mmprompt.errors import names_in_short, shown
from mmprompt.tasks.default_prompt import HINT

_MANY = 50
"""Fewer answers than these may well be uneven by chance."""

_UNEVEN = 0.75
"""The share of one choice beyond which a model that always gives it looks good."""


@row_rule("MM010")
def missing_value_text(row: CheckedRow) -> Iterator[Hit]:
    """A choice, the question, the hint or the answer is a text that stands for a missing value."""
    named = "remove it, or write what is meant: a program wrote it for a missing value"
    columns = [*row.choice_columns] if len(row.choice_columns) > 1 else [*row.choice_columns] * len(row.choices)
    for column, choice in zip(columns, row.choices, strict=False):
        if choice.strip() in MISSING:
            yield Hit(f"a choice is {shown(choice)}", named, column)
    for text in row.texts:
        if text.column in ("question", HINT) and text.text.strip() in MISSING:
            yield Hit(f"the {text.column} is {shown(text.text)}", named, text.column)
    if isinstance(row.answer, str) and row.answer.strip() in MISSING and row.answer not in row.choices:
        yield Hit(f"the answer is {shown(row.answer)}", named, row.task.output_column)


@row_rule("MM702", on_choices=True)
def answer_not_a_choice(row: CheckedRow) -> Iterator[Hit]:
    """The answer names none of the choices."""
    if kind_of(row.answer) in ("null", "blank", "object"):  # MM701 tells that there is none
        return
    if choice_of(row.answer, row.choices, row.task.config.index_base) < 0:
        known = names_in_short(without_letters(row.choices))
        hint = "give the letter, the number or the text of one of the choices"
        yield Hit(f"the answer {shown(row.answer)} is none of the choices {known}", hint, row.task.output_column)


@row_rule("MM718", on_choices=True)
def two_readings(row: CheckedRow) -> Iterator[Hit]:
    """The answer can be read as two of the choices, or as one that a scorer does not read."""
    readings = readings_of(row.answer, row.choices, row.task.config.index_base)
    if not readings:
        return
    texts = without_letters(row.choices)
    what = f"the answer {row.answer!r} may be {' or '.join([shown(texts[number]) for number in readings])}"
    if len(readings) == 1:
        what = f"the answer {row.answer!r} counts from 1, and an integer is read as the number of a choice from 0"
    letters = " or ".join([ascii_uppercase[number] for number in readings])
    hint = f"write the letter, {letters}"
    if any(len(text.strip()) == 1 and text.strip().isalpha() for text in texts):
        hint = "write the whole text of the choice that is meant, and choices that are no single letters"
    yield Hit(what, hint, row.task.output_column)


@row_rule("MM703", on_choices=True)
def repeated_choice(row: CheckedRow) -> Iterator[Hit]:
    """Two choices are the same text."""
    for text, count in Counter([text.strip() for text in without_letters(row.choices)]).items():
        if text and count > 1:
            hint = "write different choices: a model cannot tell which of them is meant"
            yield Hit(f"the choice {shown(text)} stands {count} times", hint, row.choice_columns[0])


@row_rule("MM712", on_choices=True)
def too_few_choices(row: CheckedRow) -> Iterator[Hit]:
    """A single choice."""
    if len(row.choices) == 1:
        what = f"there is one choice, {shown(row.choices[0])}"
        yield Hit(what, "give at least two, or leave the choices out", row.choice_columns[0])


@row_rule("MM714", on_choices=True)
def empty_choice(row: CheckedRow) -> Iterator[Hit]:
    """A choice before the last is empty, and a template sends it."""
    if any(error.code == "MM714" for error in row.errors):
        return
    for number, choice in enumerate(row.choices):
        if not choice.strip():
            column = row.choice_columns[number if len(row.choice_columns) > 1 else 0]
            yield Hit(f"choice {number + 1} is empty", "give it a text, or remove it", column)


@row_rule("MM717")
def blanks_around_answer(row: CheckedRow) -> Iterator[Hit]:
    """Blanks before or after the answer."""
    if isinstance(row.answer, str) and row.answer.strip() != row.answer and row.answer.strip():
        column = row.task.output_column
        fix = Fix(column, row.answer.strip())
        yield Hit(f"the answer {shown(row.answer)} has blanks at its ends", "remove them", column, fix=fix)


@dataset_rule("MM713")
def uneven_answers(store: Store) -> Iterator[Hit]:
    """Nearly all answers are the same choice."""
    counts = list(
        store.query("SELECT choice, COUNT(*) AS n FROM samples WHERE choice >= 0 GROUP BY choice ORDER BY n DESC")
    )
    total = sum([count for _, count in counts])
    if total >= _MANY and counts[0][1] > _UNEVEN * total:
        what = f"choice {counts[0][0] + 1} is the answer of {counts[0][1]} of {total} rows"
        yield Hit(what, "shuffle the choices of each row", store.output_column)
