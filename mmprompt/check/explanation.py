"""The page of a rule: what it means, why it matters, an example, and how to mend it."""

from __future__ import annotations

import re
from importlib import resources

from mmprompt.check.selection import code_of, covers, nearest_code
from mmprompt.errors import TaskError, shown
from mmprompt.errors.rules import RULES


def explanation(code: str) -> str:
    """Return the page of a rule, given its code or name, as Markdown.

    Raises:
        TaskError: there is no such rule.
    """
    given, code = code, code_of(code)
    rule = RULES.get(code)
    if rule is None:
        several = [known for known in RULES if code and covers([code], known)]
        hint = f"name one of its rules, such as {several[0]}" if several else nearest_code(given, prefixes=False)
        raise TaskError(f"unknown code {shown(given)}", hint)
    page = resources.files("mmprompt.check").joinpath("pages", f"{code[:3]}.md")
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    sections = re.split(r"^## ", text, flags=re.MULTILINE)
    section = next((section for section in sections if section.startswith(f"{code} ")), f"{code} {rule.name}")
    return f"# {section.strip()}\n\nSeverity: {rule.severity}\n"
