"""The recorded reference cases: each equal to what was recorded, or on the list of deliberate differences."""

import json

import pytest
from reference_runner import REFERENCE, recorded, run

CASES = {c["id"]: c for c in json.loads((REFERENCE / "reference_cases.json").read_text(encoding="utf-8"))["cases"]}
DIFFERENCES = json.loads((REFERENCE / "differences.json").read_text(encoding="utf-8"))


def expected(case):
    """Return what counts as equal; of a multimodal case the prompt, of a chat what is sent."""
    values = recorded(case)
    key = {"mm.pipeline": "item", "oc.chat": "sent"}.get(case["op"])
    return [{key: v[key]} if key is not None and isinstance(v, dict) else v for v in values]


@pytest.mark.parametrize("name", CASES)
def test_a_reference_case_is_equal_or_listed_with_its_reason(name):
    equal = run(CASES[name]) in expected(CASES[name])
    if name in DIFFERENCES:
        assert not equal, "this case agrees now: take it off the list"
    else:
        assert equal


def test_the_list_names_known_cases_and_a_reason_each():
    assert set(DIFFERENCES) <= set(CASES)
    assert all(reason.startswith("SPEC ") and len(reason) > 20 for reason in DIFFERENCES.values())


def test_most_cases_are_equal():
    assert len(CASES) - len(DIFFERENCES) >= 350
