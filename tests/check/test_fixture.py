"""The datasets in ``fixtures/check``: each code stands at its row, the clean ones give none, and no code is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from findings import findings_for

from mmprompt.errors.rules import RULES

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "check"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
"""From a file, and the option that it is checked with, to the codes of each of its lines; ``-`` is the whole file."""

ELSEWHERE = {
    "MM001": "a row that no other code names: no reader of text raises it",
    "MM017": "a row of a tar archive with more members than are read: tests/datasets",
    "MM023": "a part of a tar archive that is skipped: tests/datasets",
    "MM024": "a row without partner in --join: tests/datasets",
    "MM025": "annotations beside questions of VQAv2: tests/datasets",
    "MM210": "a host that is not allowed, which counts when media are fetched: tests/media",
    "MM211": "a file beyond the policy's bytes, which is too large to keep here: tests/media",
    "MM216": "a file that this user may not read: git keeps no such permission",
    "MM218": "a URL that cannot be fetched, which counts when media are fetched: tests/media",
    "MM221": "a change that --to makes, which no check makes: tests/datasets",
    "MM317": "needs fifty pictures: test_pictures.py",
    "MM405": "an hour of sound: tests/media",
    "MM406": "a codec that no library here decodes: tests/media",
    "MM506": "an hour of video: tests/media",
    "MM501": "a container without a video stream: tests/media",
    "MM509": "a codec that no library here decodes: tests/media",
    "MM601": "a meta template that does not fit the prompt of a task: tests/meta_template",
    "MM613": "examples that are dropped for a tokenizer, which a check has not: tests/render",
    "MM614": "a setting that is not sent: tests/tasks",
    "MM711": "needs a second dataset: test_planted_faults.py",
    "MM802": "a file larger than a target takes, which is too large to keep here: tests/targets",
    "MM805": "a request larger than a target takes, which is too large to keep here: tests/targets",
    "MM806": "50,000 requests: test_text_rules.py",
    "MM808": "an id that stands twice in a batch: tests/render",
    "MM900": "an error of the program: none is known",
    "MM901": "a model server, which a check does not ask: tests/run",
    "MM902": "a decoder that ends: test_checker.py and tests/media",
    "MM903": "a package that is not installed: tests/datasets",
    "MM904": "a cache on disk that cannot be written: tests/media",
}
"""The codes without a place in the folder, and why."""


def codes_in(name: str) -> dict[str, list[str]]:
    """Return the codes of a file by line."""
    file, _, option = name.partition(" --target ")
    found: dict[str, list[str]] = {}
    for finding in findings_for(FOLDER / file, option or None):
        line = "-" if finding.row is None and finding.line is None else str(finding.line or 1)
        found.setdefault(line, []).append(finding.code)
    return {line: sorted(codes) for line, codes in found.items()}


@pytest.mark.parametrize("name", EXPECTED)
def test_each_code_stands_at_its_row_and_at_no_other(name: str) -> None:
    assert codes_in(name) == EXPECTED[name]


def test_no_code_is_left_out() -> None:
    shown = {code for lines in EXPECTED.values() for codes in lines.values() for code in codes}
    assert shown | ELSEWHERE.keys() == RULES.keys()
    assert not shown & ELSEWHERE.keys()
