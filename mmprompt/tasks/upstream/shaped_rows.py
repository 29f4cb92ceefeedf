"""Rows in the shape that a runner's own YAML asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mmprompt.datasets.notes import Notes
from mmprompt.datasets.read import Dataset
from mmprompt.datasets.sample import Row, Sample
from mmprompt.errors import MMPromptError, RowError
from mmprompt.errors.findings import Note


class ShapedDataset(Dataset):
    """A dataset whose rows are shaped as they are read, one at a time."""

    __slots__ = ("_rows", "_shape")

    def __init__(self, rows: Dataset, shape: Callable[[Sample], Sample]) -> None:
        super().__init__(rows.path, rows.format, rows.roots, self._read)
        self._rows = rows
        self._shape = shape

    def _read(self, _notes: Notes) -> Iterator[Row]:
        for row in self._rows:
            if isinstance(row, RowError):
                yield row
                continue
            try:
                yield self._shape(row)
            except MMPromptError as error:
                yield row.located(RowError(error.what, error.hint, error.where, error.code))

    @property
    def notes(self) -> list[Note]:
        """Remarks on the rows as they stand in the file."""
        return self._rows.notes
