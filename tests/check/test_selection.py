"""Codes by prefix: the longest one decides, as ruff's users know it."""

from __future__ import annotations

import pytest

from mmprompt.check.explanation import explanation
from mmprompt.check.selection import Selection
from mmprompt.errors import TaskError


@pytest.mark.parametrize(
    ("select", "ignore", "extend", "told", "not_told"),
    [
        ([], [], [], ["MM201", "MM204"], ["MM310", "MM025"]),
        (["MM2"], ["MM204"], [], ["MM201"], ["MM204", "MM301"]),
        (["MM204"], ["MM2"], [], ["MM204"], ["MM201"]),
        (["MM2"], ["MM2"], [], [], ["MM201"]),
        (["ALL"], [], [], ["MM310", "MM201"], []),
        (["ALL"], ["MM3"], [], ["MM201"], ["MM301", "MM310"]),
        ([], ["ALL"], [], [], ["MM201"]),
        ([], ["ALL"], ["MM2"], ["MM201"], ["MM301"]),
        ([], [], ["MM310"], ["MM310", "MM201"], ["MM313"]),
    ],
)
def test_the_longest_prefix_decides(
    select: list[str], ignore: list[str], extend: list[str], told: list[str], not_told: list[str]
) -> None:
    selection = Selection(select, ignore, extend)
    assert [code for code in told if code not in selection] == []
    assert [code for code in not_told if code in selection] == []


@pytest.mark.parametrize("unknown", ["MX2", "MM2044", "mm2044", ""])
def test_an_unknown_code_is_refused(unknown: str) -> None:
    with pytest.raises(TaskError, match="unknown code"):
        Selection(ignore=[unknown])


def test_codes_may_be_in_lower_case() -> None:
    assert Selection(["mm2"], ["Mm204"]).codes == Selection(["MM2"], ["MM204"]).codes
    assert Selection(["all"]).codes == Selection(["ALL"]).codes


def test_a_rule_may_be_named() -> None:
    assert Selection(["similar-media"], ["Truncated-Image"]).codes == ["MM709"]
    assert explanation("similar-media") == explanation("mm709")
    with pytest.raises(TaskError, match="did you mean 'similar-media'"):
        Selection(["similar-medium"])
    for wrong in ("pictures", "no-such-rule-at-all"):
        with pytest.raises(TaskError, match="write a code, such as MM204"):
            explanation(wrong)


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("MM2", "name one of its rules, such as MM200"),
        ("mm", "name one of its rules, such as MM000"),
        ("ALL", "name one of its rules, such as MM000"),
        ("MM2044", "did you mean 'MM204'?"),
        ("", "write a code, such as MM204, or the name of its rule"),
        ("XX", "write a code, such as MM204, or the name of its rule"),
    ],
)
def test_one_rule_is_explained(given: str, hint: str) -> None:
    with pytest.raises(TaskError) as caught:
        explanation(given)
    assert (caught.value.what, caught.value.hint) == (f"unknown code '{given}'", hint)


def test_the_nearest_code_is_named() -> None:
    with pytest.raises(TaskError, match="did you mean 'MM2'"):
        Selection(["MX2"])
