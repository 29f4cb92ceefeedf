"""The page of a rule: what it means, why it matters, an example, and how to mend it."""

from __future__ import annotations

import re
from importlib import resources

from mmprompt.errors import TaskError, nearest, shown
from mmprompt.errors.rules import RULES


def explanation(code: str) -> str:
    """Return the page of a rule as Markdown.

    Raises:
        TaskError: there is no such rule.
    """
    code = code.upper()
    rule = RULES.get(code)
    if rule is None:
        raise TaskError(f"unknown code {shown(code)}", nearest(code, RULES))
    page = resources.files("mmprompt.check").joinpath("pages", f"{code[:3]}.md")
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    sections = re.split(r"^## ", text, flags=re.MULTILINE)
    section = next((section for section in sections if section.startswith(f"{code} ")), f"{code} {rule.name}")
    return f"# {section.strip()}\n\nSeverity: {rule.severity}\n"
