"""Files that patterns such as ``data/*.parquet`` name, found by a walk that is bounded."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from fnmatch import translate

from mmprompt.errors import DatasetError, shown

_WILD = re.compile(r"[*?[]")
_MOST = 1_000_000
"""Most names of files and folders that the patterns of one dataset look at."""


class Walk:
    """The walk through the folders of some patterns, all together bounded."""

    def __init__(self) -> None:
        self._left = _MOST

    def files(self, pattern: str) -> list[str]:
        """Return the files and folders that a pattern names, in order; a name without ``*?[`` stays.

        The folder before the first wildcard holds all of them, but for those behind links.

        Raises:
            DatasetError: nothing matches, the pattern goes up behind a wildcard, or the walk is too long.
        """
        if os.path.lexists(pattern) or not _WILD.search(pattern):
            return [pattern]
        folder, names = pattern, list[str]()
        while _WILD.search(folder) and folder != os.path.dirname(folder):
            folder, name = os.path.split(folder)
            names.insert(0, name)
        if os.pardir in names:
            raise DatasetError(f"{shown(pattern)} goes up ('..') behind a wildcard", "write the folder out")
        found = self.below(folder, names)
        if not found:
            raise DatasetError(f"no file matches {shown(pattern)}", "check the pattern")
        return found

    def below(self, folder: str, names: Iterable[str], ends: tuple[str, ...] = ("",)) -> list[str]:
        """Return the paths below a folder, in order: for each of ``names``, which may be patterns, a level.

        Raises:
            DatasetError: the walk is too long.
        """
        found = [folder]
        for name in names:
            step = self._matching if _WILD.search(name) else self._joined
            found = [path for above in found for path in step(above, name)]
        return sorted([path for path in found if path.endswith(ends)])

    def _matching(self, folder: str, pattern: str) -> Iterator[str]:
        hidden = pattern.startswith(".")
        try:
            matches = re.compile(translate(os.path.normcase(pattern))).match
            with os.scandir(folder or os.curdir) as entries:
                for entry in entries:
                    self._count(folder)
                    name = entry.name
                    if matches(os.path.normcase(name)) and (hidden or not name.startswith(".")):
                        yield os.path.join(folder, name)
        except (OSError, ValueError, re.error):  # no folder that may be read, no file name, no pattern
            return

    def _joined(self, folder: str, name: str) -> Iterator[str]:
        self._count(folder)
        path = os.path.join(folder, name)
        if os.path.lexists(path):
            yield path

    def _count(self, folder: str) -> None:
        self._left -= 1
        if self._left < 0:
            what = f"the search for the dataset's files looked at {_MOST:,} names, the last in {shown(folder)}"
            raise DatasetError(what, "name the files or their folder")
