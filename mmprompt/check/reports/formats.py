"""The reports by the name of their format. A report loads when it is asked for."""

from __future__ import annotations

from importlib import import_module

from mmprompt.check.reports.report import Report

_CLASSES = {
    "text": ("text", "TextReport"),
    "json": ("data", "JSONReport"),
    "jsonl": ("data", "JSONLinesReport"),
    "sarif": ("sarif", "SarifReport"),
    "junit": ("junit", "JUnitReport"),
    "github": ("github", "GitHubReport"),
    "html": ("html", "HTMLReport"),
}

FORMATS = tuple(_CLASSES)
"""What ``--output-format`` takes."""


def report_class(name: str) -> type[Report]:
    """Return the class of the report of one of ``FORMATS``."""
    module, attribute = _CLASSES[name]
    found: type[Report] = getattr(import_module(f"mmprompt.check.reports.{module}"), attribute)
    return found
