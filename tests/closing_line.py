"""The last line of a run on standard error."""

from __future__ import annotations

import re
from typing import NamedTuple

_LINE = re.compile(
    r"mmprompt: (?:(?P<stopped>[^;]+); )?"
    r"(?:(?P<written>\d+) of (?P<total>\d+) rows written to (?P<output>.+), (?P<size>[\d,]+) bytes"
    r"|nothing was written to (?P<kept>.+)); "
    r"(?P<left_out>\d+) left out(?:, (?P<repeated>\d+) repeated ids?)?, (?P<notes>no|\d+) notes?\n"
)


class Closing(NamedTuple):
    """The last line, taken apart; ``told`` is what stands before it."""

    told: str
    written: int
    left_out: int
    output: str
    size: int
    repeated: int
    notes: int
    stopped: str


def closing(stderr: str) -> Closing:
    """Take the last line apart; it must be there, and once."""
    *before, last = stderr.splitlines(keepends=True)
    match = _LINE.fullmatch(last)
    assert match, last
    told = "".join(before)
    assert not re.search(r"^mmprompt: ", told, re.MULTILINE)
    found = match.groupdict()
    written, left_out = int(found["written"] or 0), int(found["left_out"])
    assert found["total"] is None or int(found["total"]) == written + left_out
    size = int((found["size"] or "0").replace(",", ""))
    notes = 0 if found["notes"] == "no" else int(found["notes"])
    output = found["output"] or found["kept"]
    return Closing(told, written, left_out, output, size, int(found["repeated"] or 0), notes, found["stopped"] or "")
