"""``Layout``, and the functions that several layouts use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from mmprompt.datasets.choices import without_letters
from mmprompt.datasets.list_cells import list_of_cell
from mmprompt.datasets.sample import Sample, column_error
from mmprompt.errors import shown


class Layout(NamedTuple):
    """A layout of rows.

    ``columns`` are those that each row must have. ``recognises`` says whether a first row has this layout. ``read``
    gives a row the columns or messages that mmprompt sends; it raises a ``RowError`` for a row that does not fit.
    """

    name: str
    columns: tuple[str, ...]
    recognises: Callable[[Mapping[str, object]], bool]
    read: Callable[[Sample], Sample]


def has(*names: str) -> Callable[[Mapping[str, object]], bool]:
    """Return a function that says whether a row has all columns of these names."""
    wanted = frozenset(names)
    return lambda columns: wanted <= columns.keys()


def with_columns(
    sample: Sample, new: Mapping[str, object], drop: Iterable[str] = (), renamed: Iterable[str] = ()
) -> Sample:
    """Return a sample with these columns replaced and those of ``drop`` removed; its text has no tags.

    A new column that is None is left out. What the columns ``renamed`` hold is sent under a new name; they stay, since
    a template may name them.
    """
    columns = {**new, **sample.columns, **new}
    for name in (*drop, *new):
        if new.get(name) is None:
            columns.pop(name, None)
    return sample._replace(columns=columns, scanned=False, sent=sample.sent.union(renamed))


def text_of(sample: Sample, column: str) -> str:
    """Return the text of a column.

    Raises:
        RowError: it is null, or no text.
    """
    value = sample.columns.get(column)
    if isinstance(value, str):
        return value
    what = "is null" if value is None else f"is {type(value).__name__}"
    raise column_error(column, f"column '{column}' {what}", "give a text, or drop the row", "MM007")


def choice_list(sample: Sample, column: str) -> list[object] | None:
    """Return the choices of a column: a list, or one written as text. None if it is null or empty.

    Letters that the texts themselves begin with (``A. cat``, ``B. dog``) are left out.

    Raises:
        RowError: the column holds something else, or an empty choice.
    """
    value = sample.columns.get(column)
    if value is None or value == "":
        return None
    found = list_of_cell(value, cells=True)
    if not isinstance(value, (list, tuple)) and found == [value]:
        what = f"column '{column}' is not a list: {shown(value)}"
        raise column_error(column, what, "give a list of choices", "MM007")
    for number, choice in enumerate(found, 1):
        if choice is None or not str(choice).strip():
            what = f"choice {number} of column '{column}' is empty"
            raise column_error(column, what, "give it a text, or drop the row", "MM714")
    return without_letters(found) or None


def required_choices(sample: Sample, column: str) -> list[object]:
    """Return the ``choice_list`` of a column that must have one.

    Raises:
        RowError: as ``choice_list``, or the row has no choices.
    """
    choices = choice_list(sample, column)
    if choices is None:
        raise column_error(column, f"the row has no {column}", "give a list of choices", "MM006")
    return choices


def beside(sample: Sample, name: str, *folders: str) -> str:
    """Return the path of a medium that lies in one of these folders, if the dataset's folder has one of them."""
    return _folder_beside(sample.file, folders) + name


@lru_cache(maxsize=256)
def _folder_beside(file: str | None, folders: tuple[str, ...]) -> str:
    if file is not None:
        for folder in folders:
            if os.path.isdir(os.path.join(os.path.dirname(file), folder)):
                return f"{folder}/"
    return ""
