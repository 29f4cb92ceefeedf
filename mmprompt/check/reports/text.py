"""Reports for people: a line a finding, or a line a code."""

from __future__ import annotations

from typing import ClassVar

from mmprompt.check.reports.report import Report, printable
from mmprompt.check.summary import Summary
from mmprompt.errors.findings import Finding
from mmprompt.errors.rules import RULES

PASSED = "All checks passed!"


class TextReport(Report):
    """A line for each finding, in ruff's style."""

    streams: ClassVar[bool] = True

    def finding(self, finding: Finding) -> None:
        """Write the line of a finding."""
        self.write(f"{printable(str(finding))}\n")

    def end(self, summary: Summary) -> None:
        """Say so if there is nothing to tell."""
        if not summary.by_code:
            self.write(f"{PASSED}\n")


class StatisticsReport(Report):
    """A line for each code, the most frequent one first: count, code, whether ``--fix`` mends it, and name."""

    def end(self, summary: Summary) -> None:
        """Write the lines."""
        width = max([len(str(count)) for count in summary.by_code.values()], default=0)
        for code, count in sorted(summary.by_code.items(), key=lambda item: (-item[1], item[0])):
            fixable = "[*]" if summary.fixable[code] else "[ ]"
            self.write(f"{count:>{width}}  {code}  {fixable}  {RULES[code].name}\n")
        if not summary.by_code:
            self.write(f"{PASSED}\n")
