"""The reports by the name of their format."""

from __future__ import annotations

from mmprompt.check.reports.data import JSONLinesReport, JSONReport
from mmprompt.check.reports.github import GitHubReport
from mmprompt.check.reports.html import HTMLReport
from mmprompt.check.reports.junit import JUnitReport
from mmprompt.check.reports.report import Report
from mmprompt.check.reports.sarif import SarifReport
from mmprompt.check.reports.text import TextReport

FORMATS: dict[str, type[Report]] = {
    "text": TextReport,
    "json": JSONReport,
    "jsonl": JSONLinesReport,
    "sarif": SarifReport,
    "junit": JUnitReport,
    "github": GitHubReport,
    "html": HTMLReport,
}
"""What ``--output-format`` takes."""
