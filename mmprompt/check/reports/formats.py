"""The reports by the name of their format."""

from __future__ import annotations

from mmprompt.check.reports.data import JSONLinesReport, JSONReport
from mmprompt.check.reports.report import Report
from mmprompt.check.reports.text import TextReport

FORMATS: dict[str, type[Report]] = {"text": TextReport, "json": JSONReport, "jsonl": JSONLinesReport}
"""What ``--output-format`` takes."""
