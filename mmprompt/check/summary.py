"""The counts of a check."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from mmprompt.errors.findings import Finding


@dataclass(slots=True)
class Summary:
    """What a check found, in numbers. ``by_code`` counts findings by code, ``fixable`` those with a safe fix.

    ``unsafe`` is how many have a fix that may change the meaning of the row.
    """

    rows: int = 0
    by_severity: Counter[str] = field(default_factory=Counter)
    by_code: Counter[str] = field(default_factory=Counter)
    fixable: Counter[str] = field(default_factory=Counter)
    unsafe: int = 0

    def add(self, finding: Finding) -> None:
        """Count a finding."""
        self.by_severity[finding.severity] += 1
        self.by_code[finding.code] += 1
        self.fixable[finding.code] += finding.fixable

    @property
    def fails(self) -> bool:
        """Whether there are errors or warnings."""
        return bool(self.by_severity["error"] or self.by_severity["warning"])

    @property
    def data(self) -> dict[str, object]:
        """The counts as JSON has them."""
        counts = {key: self.by_severity[severity] for key, severity in _COUNTS.items()}
        codes = dict(sorted(self.by_code.items()))
        return {"rows": self.rows, **counts, "fixable": self.fixable.total(), "codes": codes}

    def __str__(self) -> str:
        """Return the counts in words: ``300 rows checked: 2 errors, 1 warning, 1 fixable with --fix``."""
        named = ((self.by_severity[severity], severity) for severity in _COUNTS.values())
        counts = [f"{count:,} {name}{'s' if count != 1 else ''}" for count, name in named if count]
        fixable = [f"{self.fixable.total():,} fixable with --fix"] if self.fixable.total() else []
        more = "more with" if fixable else "fixable with --fix"
        fixable += [f"{self.unsafe:,} {more} --unsafe-fixes"] if self.unsafe else []
        found = ", ".join(counts + fixable) or "no finding"
        return f"{self.rows:,} row{'s' if self.rows != 1 else ''} checked: {found}"


_COUNTS = {"errors": "error", "warnings": "warning", "infos": "info"}
