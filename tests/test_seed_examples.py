"""The table of examples in ``fixtures/golden/README.md``: it is whole, and says of each case what the case says."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

GOLDEN = Path(__file__).parent.parent / "fixtures" / "golden"
CASES = {path.parent.name for path in GOLDEN.glob("*/case.json")}
OUTCOMES = ("as printed", "no result printed", "exception", "not held")


class Example(NamedTuple):
    document: str
    section: str
    shows: str
    listings: str
    case: str
    outcome: str


def rows_under(heading):
    """The rows of the first table under a heading, as lists of cells."""
    text = (GOLDEN / "README.md").read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2]
    lines = [line for line in text.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def case_in(cell):
    return re.fullmatch(r"`([a-z0-9-]+)`", cell).group(1)


EXAMPLES = [Example(*cells) for cells in rows_under("Examples of the documentation")]
BEYOND = [case_in(cells[0]) for cells in rows_under("Beyond the documentation")]
HELD = [example for example in EXAMPLES if example.case != "—"]


def exception_of(case):
    return json.loads((GOLDEN / case / "case.json").read_text(encoding="utf-8")).get("exception")


def test_every_example_of_each_document_has_its_row():
    assert Counter(example.document for example in EXAMPLES) == {
        "OpenCompass prompt guide": 21,
        "AISBench prompt guide": 28,
        "OpenCompass meta template (old page)": 8,
        "OpenCompass meta template guide": 14,
        "LazyLLM prompter guide": 32,
    }


@pytest.mark.parametrize(
    ("document", "listings"),
    [
        ("OpenCompass prompt guide", 25),
        ("AISBench prompt guide", 30),
        ("OpenCompass meta template (old page)", 6),
        ("OpenCompass meta template guide", 15),
        ("LazyLLM prompter guide", 16),
    ],
)
def test_every_listing_of_each_document_is_in_a_row(document, listings):
    seen = set()
    for example in EXAMPLES:
        if example.document == document and example.listings not in ("text", "figure"):
            first, _, last = example.listings.partition("–")
            seen.update(range(int(first), int(last or first) + 1))
    assert seen == set(range(1, listings + 1))


def test_every_named_case_exists_and_every_case_is_named():
    named = {case_in(example.case) for example in HELD}
    assert named | set(BEYOND) == CASES
    assert not named & set(BEYOND)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: f"{e.document}: {e.shows}")
def test_the_outcome_is_one_of_four_with_its_reason(example):
    outcome, _, reason = example.outcome.partition(": ")
    assert outcome in OUTCOMES
    assert reason or outcome == "as printed"
    assert (outcome == "not held") == (example.case == "—")


@pytest.mark.parametrize("example", HELD, ids=lambda e: f"{e.document}: {e.shows}")
def test_the_table_says_exception_where_the_case_does_and_nowhere_else(example):
    assert example.outcome.startswith("exception: ") == bool(exception_of(case_in(example.case)))


def test_a_case_beyond_the_documentation_is_no_exception_to_it():
    assert not [case for case in BEYOND if exception_of(case)]
