"""Rows in the shape that a runner's own YAML asks for: each row of the dataset gives the rows that are sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from mmprompt.datasets.notes import Notes
from mmprompt.datasets.read import Dataset
from mmprompt.datasets.sample import Row, Sample
from mmprompt.errors import MMPromptError, RowError, names_in_short
from mmprompt.errors.findings import Note
from mmprompt.tasks.config import Section
from mmprompt.tasks.section_values import ConfigValue

Shape = Callable[[Sample], Iterable[Row]]
"""Returns the rows that one row of a dataset gives."""


class UpstreamRows(Protocol):
    """How the rows of another runner's YAML are found and read."""

    def section(self, dataset: ConfigValue) -> ConfigValue:
        """Return the section ``dataset`` for the dataset that the caller gives, or for None.

        Raises:
            TaskError: the caller has to give one.
        """
        ...

    def shaped(self, own: Dataset | None, train: Dataset | None) -> tuple[Dataset | None, Dataset | None]:
        """Return the rows that are sent, and those of the in-context examples."""
        ...


class UpstreamYaml(NamedTuple):
    """A runner's own YAML: the sections of a task, notes on what is not used, and how its rows are read."""

    config: Section
    notes: tuple[Note, ...]
    rows: UpstreamRows


def unused_note(keys: Sequence[str]) -> tuple[Note, ...]:
    """Return the note on the keys of a file that are not used, if there are any."""
    what = f"these keys do not change the prompts and are not used: {names_in_short(keys)}"
    return (Note("MM614", what),) if keys else ()


class ShapedDataset(Dataset):
    """A dataset whose rows are shaped as they are read, one at a time."""

    __slots__ = ("_rows", "_shape")

    def __init__(self, rows: Dataset, shape: Shape) -> None:
        super().__init__(rows.path, rows.format, rows.roots, self._read)
        self._rows = rows
        self._shape = shape

    def _read(self, _notes: Notes) -> Iterator[Row]:
        for row in self._rows:
            if isinstance(row, RowError):
                yield row
                continue
            try:
                yield from self._shape(row)
            except MMPromptError as error:
                yield row.located(RowError(error.what, error.hint, error.where, error.code))

    @property
    def notes(self) -> list[Note]:
        """Remarks on the rows as they stand in the file."""
        return self._rows.notes
