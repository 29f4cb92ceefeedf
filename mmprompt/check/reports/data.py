"""Reports as JSON: one object, or a line a finding."""

from __future__ import annotations

from typing import ClassVar

from mmprompt.check.reports.report import Report, json_text
from mmprompt.check.summary import Summary
from mmprompt.errors.findings import Finding


class JSONReport(Report):
    """One object with ``findings`` and ``summary``."""

    _separator = "\n"

    def begin(self) -> None:
        """Open the object and its list."""
        self.write('{"findings": [')

    def finding(self, finding: Finding) -> None:
        """Write a finding as an element of the list."""
        self.write(self._separator + json_text(finding._asdict()))
        self._separator = ",\n"

    def end(self, summary: Summary) -> None:
        """Close the list, and write the counts."""
        self.write(f'\n], "summary": {json_text(summary.data)}}}\n')


class JSONLinesReport(Report):
    """One finding a line."""

    streams: ClassVar[bool] = True

    def finding(self, finding: Finding) -> None:
        """Write a finding as a line."""
        self.write(json_text(finding._asdict()) + "\n")
