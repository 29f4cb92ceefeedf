"""A report as SARIF 2.1.0, which code hosts and editors read."""

from __future__ import annotations

import hashlib
import os
from urllib.parse import quote

from mmprompt._version import __version__
from mmprompt.check.reports.report import Report, json_text
from mmprompt.check.summary import Summary
from mmprompt.errors.findings import Finding
from mmprompt.errors.rules import RULES, page_of

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


class SarifReport(Report):
    """One SARIF log with one run; the rules that were broken stand behind the results."""

    _first = True

    def begin(self) -> None:
        """Open the log, its run and the list of results."""
        self.write(f'{{"$schema": "{_SCHEMA}", "version": "2.1.0", "runs": [{{"results": [')

    def finding(self, finding: Finding) -> None:
        """Write a finding as a result."""
        self.write(f"{'' if self._first else ','}\n{json_text(_result(finding))}")
        self._first = False

    def end(self, summary: Summary) -> None:
        """Close the list, and write the rules."""
        rules = [_rule(code) for code in sorted(summary.by_code)]
        tool = {"driver": {"name": "mmprompt", "semanticVersion": __version__, "rules": rules}}
        self.write(f'\n], "columnKind": "unicodeCodePoints", "tool": {json_text(tool)}}}]}}\n')


def _rule(code: str) -> dict[str, object]:
    rule = RULES[code]
    return {
        "id": code,
        "name": rule.name,
        "shortDescription": {"text": rule.name.replace("-", " ")},
        "help": {"text": f"mmprompt check --explain {code} ({page_of(code)})"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(finding: Finding) -> dict[str, object]:
    text = "; ".join(filter(None, (finding.message, finding.hint)))
    result: dict[str, object] = {
        "ruleId": finding.code,
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "partialFingerprints": {"mmpromptFinding/v1": _fingerprint(finding)},
        "properties": {name: getattr(finding, name) for name in ("row", "id", "column", "offset", "part", "fixable")},
    }
    if finding.file is not None:
        place: dict[str, object] = {"artifactLocation": {"uri": _uri(finding.file)}}
        if finding.line is not None:
            place["region"] = {"startLine": finding.line}
        result["locations"] = [{"physicalLocation": place}]
    return result


def _fingerprint(finding: Finding) -> str:
    """Return what stays the same when rows are added before: the rule, the sample and the words."""
    held = json_text([finding.code, finding.file, finding.id, finding.column, finding.message])
    return hashlib.sha256(held.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _uri(path: str) -> str:
    return quote(path.replace(os.sep, "/"), safe="/", errors="surrogateescape")
