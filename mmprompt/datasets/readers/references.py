"""Pictures that another row of the same TSV file holds: the row names it by its index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from mmprompt.datasets.layouts.vlmevalkit import image_index
from mmprompt.datasets.readers.join import JoinTable, join_table
from mmprompt.datasets.sample import Row, Sample, column_error
from mmprompt.errors import RowError, shown


def with_referenced_pictures(rows: Iterable[Row], again: Callable[[], Iterable[Row]]) -> Iterator[Row]:
    """Yield rows with the picture of the row that ``image`` names by its index; ``again`` reads all rows once more.

    The rows are read again, twice, only if a row names another. Memory does not grow with their pictures.
    """
    with join_table() as table:
        filled = False
        for row in rows:
            wanted = None if isinstance(row, RowError) else image_index(row.columns)
            if wanted is None or isinstance(row, RowError):
                yield row
                continue
            if not filled:
                _fill(table, again)
                filled = True
            found = table.of(wanted)
            if found:
                yield row._replace(columns={**row.columns, "image": found[0]})
            else:
                what = f"'image' names the row {shown(wanted)}, and no row of that index holds a picture"
                yield row.located(column_error("image", what, "give the picture itself", "MM715"))


def _fill(table: JoinTable, again: Callable[[], Iterable[Row]]) -> None:
    """Store the pictures that other rows name."""
    named = {image_index(row.columns) for row in again() if isinstance(row, Sample)}
    for row in again():
        if isinstance(row, Sample) and str(row.columns.get("index")) in named and image_index(row.columns) is None:
            table.add(row.columns["index"], row.columns["image"])
