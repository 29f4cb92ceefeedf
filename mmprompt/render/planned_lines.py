"""Lines of JSON that go by a plan as they stand in the file, without being read as rows first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmprompt.datasets.line_columns import LineColumns, text_of
from mmprompt.render.plan import LONGEST_MATCHED

if TYPE_CHECKING:
    from mmprompt.render.plans import Plans

_BACKSLASH = ord("\\")
_MOST_MISSES = 1000
"""After how many lines in a row that match no plan none is expected."""


class PlannedLines:
    """Takes the lines of a JSON Lines file that a plan matches; see ``AtOnce``.

    A line that is taken is one that every reader of JSON reads alike: the keys in the plan's order and each once, a
    value of the plan's type for each, valid UTF-8, no escape but the usual ones. All others are left to the reader.

    Args:
        plans: the plans of the builder or renderer that gets the rows.
        whole: make whole lines of ``--emit messages``, not requests.
    """

    def __init__(self, plans: Plans, *, whole: bool) -> None:
        self._forms = plans.line_forms if whole else plans.wire_forms
        self._whole = whole
        self._misses = 0

    def take(self, line: bytes) -> LineColumns | None:
        """Return the columns of a line, with what is known of its request; None if the line has to be read."""
        if len(line) > LONGEST_MATCHED or self._misses == _MOST_MISSES:
            return None
        for form in self._forms:
            if (match := form.match(line)) is not None:
                break
        else:
            self._misses += 1
            return None
        self._misses = 0
        if not line.isascii() and not _is_utf8(line):
            return None
        values = match.groups()
        made = b"" if form.media else form.filled(values, [])
        if made is None:
            return None
        taken = LineColumns()
        name = values[form.named]
        taken.id = text_of(name) if _BACKSLASH in name else name.decode()
        taken.form = form
        taken.shape = form.plan.line_shape
        taken.match = match
        taken.made = made
        taken.around = form.around(values) if self._whole and not made else None
        return taken


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
