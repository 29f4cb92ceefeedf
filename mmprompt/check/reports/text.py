"""Reports for people: a line a finding, or a line a code."""

from __future__ import annotations

from typing import ClassVar

from mmprompt.check.reports.report import Report, Write, printable
from mmprompt.check.summary import Summary
from mmprompt.errors.findings import Finding
from mmprompt.errors.missing_files import TOLD
from mmprompt.errors.rules import RULES

PASSED = "All checks passed!"


_ALIKE = TOLD
"""How many findings of a file are written that are alike in all but their place."""

_KINDS = 10_000
"""Kinds of findings that are counted. Those beyond are written one by one, so that memory does not grow with them."""


class TextReport(Report):
    """A line for each finding, in ruff's style. Of those with the same words the first ones stand for all.

    So do the first ones if each of the first rows misses a file.
    """

    streams: ClassVar[bool] = True

    def __init__(self, write: Write) -> None:
        super().__init__(write)
        self._kinds: dict[tuple[str, ...], int] = {}

    def finding(self, finding: Finding) -> None:
        """Write the line of a finding, or count it."""
        message = "no such file: …" if self.missing.holds(finding) else finding.message
        kind = (finding.file or "", finding.code, message, finding.hint)
        count = self._kinds.get(kind, 0)
        if count or len(self._kinds) < _KINDS:
            self._kinds[kind] = count + 1
        if count < _ALIKE:
            self.write(f"{printable(str(finding))}\n")
        if self.missing.news:
            place = f"{finding.file}: " if finding.file else ""
            self.write(f"{printable(place)}… {printable(self.missing.news)}\n")

    def end(self, summary: Summary) -> None:
        """Write how many findings were only counted; say so if there is nothing to tell."""
        folded = {kind: count - _ALIKE for kind, count in self._kinds.items() if count > _ALIKE}
        for (file, code, message, hint), count in folded.items():
            place = f"{file}: " if file else ""
            words = f"{message}; {hint}" if hint else message
            self.write(printable(f"{place}… and {count:,} more: {code} {words}") + "\n")
        if folded:
            self.write("… --output-format jsonl tells each of them\n")
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
