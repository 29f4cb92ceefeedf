"""A report as annotations of GitHub's workflows: a line ``::error file=…,line=…::…`` a finding."""

from __future__ import annotations

from typing import ClassVar

from mmprompt.check.reports.report import Report, printable
from mmprompt.errors.findings import Finding

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


class GitHubReport(Report):
    """A workflow command for each finding."""

    streams: ClassVar[bool] = True

    def finding(self, finding: Finding) -> None:
        """Write the command of a finding."""
        places = {"file": finding.file, "line": finding.line, "title": f"mmprompt {finding.code}"}
        given = ",".join([f"{name}={_of_property(str(value))}" for name, value in places.items() if value is not None])
        about = "" if finding.id is None else f" (sample {finding.id})"
        text = "; ".join(filter(None, (finding.message, finding.hint))) + about
        self.write(f"::{_COMMANDS[finding.severity]} {given}::{_of_data(text)}\n")


def _of_data(text: str) -> str:
    return printable(text, "\r\n").replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _of_property(text: str) -> str:
    return _of_data(text).replace(":", "%3A").replace(",", "%2C")
