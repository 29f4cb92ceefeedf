"""Each code has a page, with what it means, why it matters, an example, and how to mend it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mmprompt
from mmprompt.check.explanation import explanation
from mmprompt.errors.rules import RULES

PAGES = Path(mmprompt.__file__).parent / "check" / "pages"


@pytest.mark.parametrize("code", sorted(RULES))
def test_a_page_has_four_paragraphs_in_order(code: str) -> None:
    page = explanation(code)
    assert page.startswith(f"# {code} {RULES[code].name}\n")
    assert re.findall(r"^(\w+): \S", page, re.MULTILINE) == ["What", "Why", "Example", "Mend", "Severity"]


def test_pages_hold_each_code_once_and_in_order() -> None:
    for page in sorted(PAGES.glob("*.md")):
        codes = re.findall(r"^## (\w+)", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert codes == sorted(set(codes))
        assert {code[:3] for code in codes} == {page.stem}
