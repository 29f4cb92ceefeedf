"""The recorded reference cases: each gives what upstream gave, or what the listed differences make of it."""

import copy

import pytest
from reference_record import as_lines
from reference_rules import (
    DIFFERENCES,
    EVERYWHERE,
    LISTED,
    REASONS,
    REFUSALS,
    REFUSED,
    RULES,
    agrees,
    changed,
    expected,
    given,
)
from reference_runner import run
from reference_values import CASES, REFERENCE

STEPS = {**DIFFERENCES, **EVERYWHERE}


def right(result, name):
    return any(agrees(result, value) for value in expected(CASES[name]))


def test_where_the_flavours_part_the_list_says_whose_result_is_ours():
    values = {name: expected(CASES[name]) for name in CASES.keys() - REFUSALS.keys()}
    assert [name for name, (first, *others) in values.items() if any(other != first for other in others)] == []


@pytest.mark.parametrize("name", DIFFERENCES)
def test_each_reason_of_a_difference_changes_the_result(name):
    (value,) = given(CASES[name])
    for reason, how in DIFFERENCES[name].items():
        after = changed(reason, how, CASES[name], value)
        assert after != value, f"{reason} changes nothing: take it off the list"
        value = after


def leaves(value, path=()):
    if isinstance(value, dict) and "error" in value:
        yield (*path, "error")
    elif isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], (*path, key))
    else:
        yield path


def spoilt(value, path):
    if not path:
        return f"{value}~"
    out = copy.copy(value)
    out[path[0]] = spoilt(value[path[0]], path[1:])
    return out


@pytest.mark.parametrize("name", CASES)
def test_a_reference_case_gives_upstreams_result_or_the_listed_one(name):
    """One other character anywhere in the result would be noticed."""
    result = run(CASES[name])
    assert right(result, name), result
    assert [path for path in leaves(result) if right(spoilt(result, path), name)] == []


def test_an_error_is_compared_by_what_it_says_too():
    error = {"error": "TagError", "says": "q @3: a terminator with no open segment"}
    assert agrees(error, {"error": "TagError", "says": "@3: a terminator"})
    assert not agrees(error, {"error": "TagError", "says": "@4: a terminator"})
    assert not agrees(error, REFUSED)


def test_the_list_names_known_cases_and_gives_each_reason_in_words():
    assert DIFFERENCES.keys() | REFUSALS.keys() <= CASES.keys()
    assert not DIFFERENCES.keys() & REFUSALS.keys()
    assert {reason for steps in STEPS.values() for reason in steps} == REASONS.keys()
    assert {r for steps in STEPS.values() for r, how in steps.items() if how == "rule"} == RULES.keys()
    assert all(len(words) > 40 and words.endswith(".") for words in REASONS.values())


@pytest.mark.parametrize("name", REFUSALS)
def test_what_both_refuse_upstream_refuses_in_one_of_its_flavours(name):
    assert REFUSED in given(CASES[name])


def test_the_list_has_the_form_that_the_recording_script_writes():
    assert as_lines(LISTED) == (REFERENCE / "differences.json").read_text(encoding="utf-8")


def test_most_cases_are_equal():
    assert len(CASES) - len(DIFFERENCES) >= 350
