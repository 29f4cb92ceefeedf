"""That the table of guards is true of the source, in which ``run.py`` switches each of them off."""

from __future__ import annotations

import ast

import pytest
from guard import guard
from table import GUARDS, TESTS, THREATS, WITHOUT, named_tests, texts_without


def test_what_a_guard_changes_is_there_once_and_is_python_without_it() -> None:
    for each in GUARDS:
        for file, text in texts_without(each).items():
            ast.parse(text, file)


def test_a_text_that_is_not_there_or_is_there_twice_is_an_error() -> None:
    for text in ("no such text", "import"):
        with pytest.raises(ValueError, match=r"media/files\.py holds"):
            texts_without(guard("is absolute", "all", ("media/files.py", text, "")))


def test_each_threat_has_a_guard_or_a_reason_why_it_has_none() -> None:
    guarded = {each.threat for each in GUARDS}
    assert guarded | WITHOUT.keys() == THREATS.keys()
    assert not guarded & WITHOUT.keys()


def test_each_guard_has_a_name_of_its_own_and_tests_that_are_there() -> None:
    assert len({each.name for each in GUARDS}) == len(GUARDS)
    for each in GUARDS:
        for file, _, name in (test.partition("::") for test in named_tests(each)):
            text = (TESTS.parent / file).read_text(encoding="utf-8")
            assert f"def {name.partition('[')[0]}(" in text or not name, each.name
