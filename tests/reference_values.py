"""The recorded reference cases, and their data as objects of ours or as plain JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mmprompt import PromptList
from mmprompt.templates.prompt_list import Section, in_section

REFERENCE = Path(__file__).parent.parent / "fixtures" / "reference"
CASES = {c["id"]: c for c in json.loads((REFERENCE / "reference_cases.json").read_text(encoding="utf-8"))["cases"]}
SECTIONS = ("begin", "round", "end", "ice")


def decoded(value: Any) -> Any:
    """Return recorded data as objects; the section marks of a PromptList become our sections."""
    if isinstance(value, list):
        return [decoded(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "@pl" in value:
        return _prompt_list(value["@pl"])
    if "@t" in value:
        return tuple(decoded(v) for v in value["@t"])
    if "@d" in value:
        return {decoded(k): decoded(v) for k, v in value["@d"]}
    return {k: decoded(v) for k, v in value.items()}


def _prompt_list(items: list[Any]) -> PromptList:
    out, open_sections = PromptList(), []
    for item in items:
        if isinstance(item, dict) and set(item) == {"section", "pos"}:
            if item["section"] not in SECTIONS:
                continue  # no section of ours
            if open_sections and item["pos"] == "end" and open_sections[-1].kind == item["section"]:
                open_sections.pop()
            else:  # upstream opens the end section with an end mark
                open_sections.append(Section(item["section"]))
        else:
            out.append(in_section(decoded(item), open_sections[-1]) if open_sections else decoded(item))
    return out


def plain(value: Any) -> Any:
    """Return recorded data without section marks, all lists plain."""
    if isinstance(value, list):
        return [plain(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "@pl" in value:
        marks = [i for i in value["@pl"] if isinstance(i, dict) and set(i) == {"section", "pos"}]
        return [plain(i) for i in value["@pl"] if i not in marks]
    if "@t" in value:
        return [plain(v) for v in value["@t"]]
    return {k: plain(v) for k, v in value.items()}
