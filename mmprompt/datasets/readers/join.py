"""Rows of one file joined with those of another, in memory that does not grow with either."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Union

from mmprompt.datasets.choices import is_null
from mmprompt.datasets.sample import Row, Sample, each, no_column
from mmprompt.errors import DatasetError, RowError, nearest, shown

if TYPE_CHECKING:
    import sqlite3

_CACHE = 1 << 14
"""KiB of the table that stay in memory; the rest lies in a temporary file without a name."""

_STEP = 1000

_Key = Union[bytes, int, str, None]


class JoinTable:
    """Values by key. ``1`` and ``"1"`` are the same key, since CSV files hold text only.

    ``True`` and ``"True"`` are not. Null is no key: nothing is found by it. Lists and objects compare by their JSON.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._waiting: list[tuple[_Key, str]] = []
        self._indexed = False
        database.execute(f"pragma cache_size=-{_CACHE}")
        database.execute("create table rows (key, value text)")

    def add(self, key: object, value: object) -> None:
        """Store a value, which JSON must be able to hold.

        Raises:
            TypeError: JSON cannot hold it.
        """
        self._waiting.append((_stored(key), json.dumps(value)))
        if len(self._waiting) >= _STEP:
            self._write()

    def of(self, key: object) -> list[object]:
        """Return the values of a key, in the order in which they were added."""
        if not self._indexed:
            self._write()
            self._database.execute("create index keys on rows (key)")
            self._indexed = True
        found = self._database.execute("select value from rows where key = ? order by rowid", (_stored(key),))
        return [json.loads(value) for (value,) in found]

    def _write(self) -> None:
        self._database.executemany("insert into rows values (?, ?)", self._waiting)
        self._waiting = []


def _stored(key: object) -> _Key:
    """Return a key as SQLite stores it: values of different types are never equal there, and null equals nothing."""
    if is_null(key):
        return None
    if isinstance(key, bool):
        return int(key)
    if isinstance(key, (list, tuple, Mapping)):
        return json.dumps(key, default=str)
    return str(key).encode("utf-8", "surrogatepass")


@contextmanager
def join_table() -> Iterator[JoinTable]:
    """Give an empty table; the end of the ``with`` block deletes it.

    Raises:
        DatasetError: the table cannot be written, for example because the disk is full.
    """
    import sqlite3  # noqa: PLC0415  # only where files are joined

    database = sqlite3.connect("", isolation_level=None)  # a temporary file, which SQLite removes
    try:
        database.execute("begin")
        yield JoinTable(database)
    except (sqlite3.Error, OverflowError) as error:
        hint = "make room in the folder of temporary files, or name another one: TMPDIR=DIR"
        raise DatasetError(f"the table that joins rows cannot be written: {error}", hint) from None
    finally:
        database.close()


def table_of(rows: Iterable[Row], column: str, table: JoinTable, name: str) -> None:
    """Store rows in a table by the value of a column.

    Raises:
        DatasetError: a row lacks the column, or holds a value that JSON cannot hold.
    """
    for row in rows:
        if isinstance(row, RowError):
            raise DatasetError(f"a row to join cannot be read: {row.what}", row.hint, row.where, row.code)
        if column not in row.columns:
            hint = nearest(column, row.columns)
            raise row.located(DatasetError(f"no column {shown(column)} to join by in {shown(name)}", hint))
        try:
            table.add(row.columns[column], {k: v for k, v in row.columns.items() if k != column})
        except TypeError:
            error = DatasetError(f"{shown(name)} holds media, which cannot be joined", "swap the two files")
            raise row.located(error) from None


def joined(rows: Iterable[Row], column: str, table: JoinTable, missing: Missing) -> Iterator[Row]:
    """Return rows with the columns of their partners; a row's own columns stay. ``missing`` counts partners."""

    def with_partner(row: Sample) -> Sample:
        if column not in row.columns:
            raise no_column(column, f"no column {shown(column)}, by which rows are joined", row.columns)
        partners = table.of(row.columns[column])
        missing.count(row, len(partners))
        partner = partners[0] if partners else None
        return row._replace(columns={**partner, **row.columns}) if isinstance(partner, Mapping) else row

    return each(rows, with_partner)


class Missing:
    """Counts the rows that have no partner, or several."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._counts = {"no partner": 0, "several partners, of which the first counts": 0}
        self._first: dict[str, str] = {}

    def count(self, row: Sample, partners: int) -> None:
        """Count a row by its number of partners."""
        if partners != 1:
            kind = [*self._counts][partners > 1]
            self._counts[kind] += 1
            self._first.setdefault(kind, row.label)

    def texts(self) -> list[str]:
        """Return a line for each kind, with its number of rows and the first of them."""
        return [
            f"{'1 row has' if count == 1 else f'{count} rows have'} {kind} in {self._name} "
            f"(first: {shown(self._first[kind])})"
            for kind, count in self._counts.items()
            if count
        ]
