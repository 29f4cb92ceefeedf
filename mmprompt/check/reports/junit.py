"""A report as JUnit XML: a suite for each dataset, a failed test for each finding."""

from __future__ import annotations

import re
from typing import ClassVar
from xml.sax.saxutils import escape, quoteattr

from mmprompt.check.reports.report import Report
from mmprompt.check.store import Store
from mmprompt.check.summary import Summary
from mmprompt.errors.findings import Finding
from mmprompt.errors.rules import RULES

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, even escaped."""


class JUnitReport(Report):
    """A suite for each dataset. One without findings has one test, which passed."""

    _indent: ClassVar[str] = "    "

    def begin(self) -> None:
        """Open the document."""
        self.write('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="mmprompt check">\n')

    def dataset(self, name: str, store: Store) -> None:
        """Write the suite of a dataset."""
        failures = store.count()
        counts = f'tests="{max(failures, 1)}" failures="{failures}" errors="0" skipped="0"'
        self.write(f"  <testsuite name={_attribute(name)} {counts}>\n")
        super().dataset(name, store)
        if not failures:
            self.write(f'{self._indent}<testcase classname={_attribute(name)} name="check"/>\n')
        self.write("  </testsuite>\n")

    def finding(self, finding: Finding) -> None:
        """Write a finding as a failed test."""
        name = f"{finding.code} {RULES[finding.code].name} {finding.place}".rstrip()
        line = "" if finding.line is None else f' line="{finding.line}"'
        file = "" if finding.file is None else f" file={_attribute(finding.file)}"
        self.write(
            f"{self._indent}<testcase classname={_attribute(finding.file or 'dataset')} name={_attribute(name)}"
            f"{file}{line}>\n"
            f"{self._indent}  <failure type={_attribute(finding.severity)} message={_attribute(finding.message)}>"
            f"{escape(_NOT_XML.sub(_escaped, str(finding)))}</failure>\n{self._indent}</testcase>\n"
        )

    def end(self, summary: Summary) -> None:  # noqa: ARG002  # the suites have their counts
        """Close the document."""
        self.write("</testsuites>\n")


def _attribute(text: str) -> str:
    return quoteattr(_NOT_XML.sub(_escaped, text))


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
