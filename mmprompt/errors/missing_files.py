"""Notices that each of the first rows of a dataset misses a file: then the folder is wrong rather than the rows."""

from __future__ import annotations

from collections.abc import Sequence

from mmprompt.errors import names_in_short, shown
from mmprompt.errors.findings import Finding

TOLD = 3
"""How many of these rows are told one by one."""


class MissingFiles:
    """Counts the rows of a dataset that each miss a file, from the first row to the first that misses none.

    ``roots`` are the folders in which files are looked for. ``news`` is what the last finding gives to say, or ``""``.
    """

    def __init__(self, roots: Sequence[str] = ()) -> None:
        self.roots = roots
        self.news = ""
        self._rows = 0

    def holds(self, finding: Finding) -> bool:
        """Return whether a finding is about a missing file, and each row before its own misses one too.

        Findings come in the order of rows; row 0 begins another dataset.
        """
        self.news = ""
        row = finding.row
        if finding.code != "MM201" or row is None:
            return False
        if row in (0, self._rows):
            self._rows = row + 1
            if row == TOLD:
                self.news = self._words()
        return row < self._rows

    def _words(self) -> str:
        where = f"relative paths begin at {names_in_short(map(shown, self.roots))}: " if self.roots else ""
        return f"each of the first {self._rows} rows misses a file; {where}check --media-root DIR"
