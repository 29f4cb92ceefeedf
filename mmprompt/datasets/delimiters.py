"""What separates the cells of a CSV file whose header holds no comma."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

_READ = (";", "\t")
"""Delimiters that are read in the place of a comma. Excel writes ``;`` where the decimal point is a comma."""

_OTHERS = (*_READ, "|")
"""Delimiters of files that look like CSV."""


_DECLARED = r'\s*"?sep=([^\w"\r\n])"?\s*'


def declared_delimiter(lines: Sequence[str]) -> str | None:
    """Return what separates the cells, if these lines are the line with which Excel says so: ``sep=;``."""
    found = re.fullmatch(_DECLARED, "".join(lines), re.IGNORECASE)
    return found[1] if found else None


def header_delimiter(lines: Sequence[str], delimiter: str = ",") -> str:
    """Return what separates the names of a header: ``delimiter`` or, if no comma does, a semicolon or a tab.

    It is the only mark in the header, and no name has a blank at its beginning or end, as the words of a sentence have.
    """
    if delimiter != "," or len(cells_of(lines, ",")) > 1:
        return delimiter
    found = [mark for mark in _OTHERS if len(cells_of(lines, mark)) > 1]
    if len(found) != 1 or found[0] not in _READ:
        return delimiter
    names = [name for name in cells_of(lines, found[0]) if name.strip()]
    return found[0] if len(names) > 1 and all(name == name.strip() for name in names) else delimiter


def cells_of(lines: Sequence[str], delimiter: str) -> list[str]:
    """Return the cells of the first record of lines that is not blank; none if the csv module refuses it."""
    try:
        return next(filter(None, csv.reader(lines, delimiter=delimiter)), [])
    except csv.Error:
        return []


def other_mark(header: Sequence[str]) -> str | None:
    """Return the other delimiter that a header seems to have, if it is one column."""
    return next((mark for mark in _OTHERS if mark in header[0]), None) if len(header) == 1 else None


def how_to_mend(mark: str) -> str:
    """Return what to do about a header that is one column with this mark in it."""
    return "pass --format tsv" if mark == "\t" else "save the file with commas"
