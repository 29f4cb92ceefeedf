"""Notices that each of the first rows of a dataset misses a file: then the folder is wrong rather than the rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice

from mmprompt.errors import names_in_short, shown
from mmprompt.errors.findings import Finding

TOLD = 3
"""How many of these rows are told one by one."""

_MOST_FOLDERS = 1000
"""How many folders of one are looked into."""

_OF_TEXTS = frozenset(("annotations", "annotation", "labels", "metadata", "meta", "json", "questions"))
"""Names of folders of text, whose media lie in a folder beside them."""


class MissingFiles:
    """Counts the rows of a dataset that each miss a file, from the first row to the first that misses none.

    ``roots`` are the folders in which files are looked for. ``news`` is what the last finding gives to say, or ``""``:
    of the first row, in which folder nearby its file lies.
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
            first = row == 0 and self._rows != 1
            self._rows = row + 1
            if first:
                self.news = self._nearby(finding.medium or "")
            elif row == TOLD:
                self.news = self._words()
        return row < self._rows

    def _words(self) -> str:
        where = f"relative paths begin at {names_in_short(map(shown, self.roots))}: " if self.roots else ""
        return f"each of the first {self._rows} rows misses a file; {where}check --media-root DIR"

    def _nearby(self, name: str) -> str:
        if os.path.isabs(name) or not {"", os.curdir, os.pardir}.isdisjoint(name.split("/")):
            return ""
        for folder in _folders_near(self.roots):
            if os.path.isfile(os.path.join(folder, name)):
                return f"{shown(name)} lies in another folder: pass --media-root {folder}"
        return ""


def _folders_near(roots: Sequence[str]) -> Iterator[str]:
    """Yield the folders in each root, the folder that holds it, and those beside it if it is one of texts."""
    for root in roots:
        above = os.path.normpath(os.path.join(root, os.pardir))
        yield from _folders_in(os.path.normpath(root))
        yield above
        if os.path.basename(os.path.abspath(root)).lower() in _OF_TEXTS:
            yield from _folders_in(above)


def _folders_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            found = [os.path.join(folder, entry.name) for entry in islice(entries, _MOST_FOLDERS) if entry.is_dir()]
    except OSError:
        return []
    return sorted(map(os.path.normpath, found))
