"""Which column plays which part: ``--map COLUMN=ROLE`` and ``dataset.columns``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from mmprompt.datasets.list_cells import list_of_cell
from mmprompt.datasets.sample import Row, Sample, each, no_column
from mmprompt.errors import DatasetError, nearest, shown
from mmprompt.messages import MODALITIES

COLUMNS = {"question": "question", "answer": "answer", "choices": "options", "hint": "hint", "system": "system"}
"""The column that holds what a role names."""

ROLES = (*MODALITIES, *COLUMNS, "id")


def check_roles(roles: Mapping[str, str]) -> None:
    """Refuse an unknown role, and two columns with a role that only one column can have.

    Raises:
        DatasetError: a role is unknown or given twice.
    """
    taken: dict[str, str] = {}
    for column, role in roles.items():
        if role not in ROLES:
            raise DatasetError(f"unknown role {shown(role)} of column {shown(column)}", nearest(role, ROLES))
        if role in taken and role not in MODALITIES:
            what = f"the columns {shown(taken[role])} and {shown(column)} both have the role {role}"
            raise DatasetError(what, "name one of them")
        taken[role] = column


def with_roles(rows: Iterable[Row], roles: Mapping[str, str], *, templates: bool) -> Iterator[Row]:
    """Return rows with the columns that roles name; a row without a named column is an error.

    For ``templates`` the columns also keep their own names, and the media of mapped columns also stand in ``image``,
    ``audio`` and ``video``.
    """
    return each(rows, partial(_with_columns, roles=roles, templates=templates))


def _with_columns(row: Sample, roles: Mapping[str, str], templates: bool) -> Sample:
    missing = next((c for c, role in roles.items() if role not in MODALITIES and c not in row.columns), None)
    if missing is not None:
        raise no_column(missing, f"no column {shown(missing)}, which has the role {roles[missing]}", row.columns)
    columns = dict(row.columns)
    name = row.id
    for column, role in roles.items():
        if column not in row.columns:
            continue
        value = row.columns[column]
        if role == "id":
            name = value
        elif role in COLUMNS:
            columns[COLUMNS[role]] = value
        if role not in MODALITIES:
            if not templates and column != COLUMNS.get(role):
                del columns[column]
        elif templates and column != role:
            own = list_of_cell(columns[role]) if columns.get(role) is not None else []
            every = [*own, *list_of_cell(value)] if value is not None else own
            columns[role] = every[0] if len(every) == 1 else every
    return row._replace(columns=columns, id=name)
