"""Rules on the whole dataset: repeated and similar samples and media, conflicting answers."""

from __future__ import annotations

from collections.abc import Iterator

from mmprompt.check.rule import Hit, dataset_rule
from mmprompt.check.store import Store


@dataset_rule("MM707")
def repeated_sample(store: Store) -> Iterator[Hit]:
    """The same texts, media and answer in two rows."""
    again = store.query(
        "SELECT later.row, first.line, first.row FROM (SELECT MIN(row) AS row, sent, answer FROM samples"
        " WHERE sent IS NOT NULL GROUP BY sent, answer HAVING COUNT(*) > 1) AS twin"
        " JOIN samples AS later ON later.sent = twin.sent AND later.answer IS twin.answer AND later.row > twin.row"
        " JOIN samples AS first ON first.row = twin.row ORDER BY later.row"
    )
    for row, line, first in again:
        place = f"row {first}" if line is None else f"line {line}"
        yield Hit(f"the row sends the same as {place}, with the same answer", "drop one of the two", row=row)
