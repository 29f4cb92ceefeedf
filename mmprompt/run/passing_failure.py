"""A row whose error may pass, as a run remembers it until it asks once more: by numbers."""

from __future__ import annotations

from typing import NamedTuple

from mmprompt.datasets.sample import Sample
from mmprompt.errors import ServerError
from mmprompt.render.builder import FailedRow
from mmprompt.run.journal import JournalLine


class PassingFailure(NamedTuple):
    """Where the error of a row stands in the journal, and the row in its dataset."""

    place: int
    file: str | None
    line: int | None

    def row(self, written: JournalLine) -> FailedRow:
        """Return the row as failed, with the words that its line in the journal has."""
        code, _, words = str(written.error).partition(" ")
        row = Sample({}, written.id, self.file, self.line, written.row, scanned=False)
        return FailedRow(row, row.located(ServerError(words, code=code)))
