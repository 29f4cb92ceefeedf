"""Rules on rows that send the same: repeated samples, conflicting answers, and overlap with another dataset."""

from __future__ import annotations

import json
from collections.abc import Iterator

from mmprompt.check.rule import Hit, dataset_rule
from mmprompt.check.rules.columns import FEW, NEARLY_ALL, place_of_row
from mmprompt.check.store import Store
from mmprompt.errors import shown


@dataset_rule("MM707")
def repeated_sample(store: Store) -> Iterator[Hit]:
    """The same texts, media and answer in two rows."""
    again = store.query(
        "SELECT later.row, first.file, first.line, first.row FROM (SELECT MIN(row) AS row, sent, answer FROM samples"
        " WHERE sent IS NOT NULL GROUP BY sent, answer HAVING COUNT(*) > 1) AS twin"
        " JOIN samples AS later ON later.sent = twin.sent AND later.answer IS twin.answer AND later.row > twin.row"
        " JOIN samples AS first ON first.row = twin.row ORDER BY later.row"
    )
    for row, *first in again:
        yield Hit(
            f"the row sends the same as {place_of_row(*first)}, with the same answer", "drop one of the two", row=row
        )


_SEVERAL = 0.5
"""The share of rows with another answer to the same question from which on a dataset has several on purpose."""


@dataset_rule("MM710")
def conflicting_answers(store: Store) -> Iterator[Hit]:
    """The same texts and media in two rows, with different answers; one finding if most rows are such."""
    counted = store.query(
        "SELECT TOTAL(n * (answers > 1)), TOTAL(n) FROM (SELECT COUNT(*) AS n, COUNT(DISTINCT answer) AS answers"
        " FROM samples WHERE sent IS NOT NULL AND answer IS NOT NULL GROUP BY sent)"
    )
    conflicting, total = next(counted)
    if conflicting >= FEW and conflicting >= _SEVERAL * total:
        what = f"{conflicting:.0f} of {total:.0f} rows ask what another row asks, and have another answer"
        hint = "give a row all answers to its question, as a list: replies are held against those of their own row"
        yield Hit(what, hint, store.output_column)
        return
    again = store.query(
        "SELECT later.row, later.answer, first.answer, first.file, first.line, first.row FROM"
        " (SELECT MIN(row) AS row, sent FROM samples WHERE sent IS NOT NULL AND answer IS NOT NULL"
        " GROUP BY sent HAVING COUNT(DISTINCT answer) > 1) AS twin"
        " JOIN samples AS first ON first.row = twin.row"
        " JOIN samples AS later ON later.sent = twin.sent AND later.answer IS NOT NULL"
        " AND later.answer IS NOT first.answer ORDER BY later.row"
    )
    for row, answer, other, *first in again:
        what = f"the row sends the same as {place_of_row(*first)}, whose answer is {shown(json.loads(other))}"
        yield Hit(f"{what}, not {shown(json.loads(answer))}", "keep the right one", store.output_column, row=row)


@dataset_rule("MM711")
def train_test_overlap(store: Store) -> Iterator[Hit]:
    """A row that the other dataset, such as the training set, has too."""
    shared = store.query(
        "SELECT samples.row, other.file, other.line, other.row FROM samples"
        " JOIN (SELECT sent, MIN(rowid) AS first FROM against GROUP BY sent) AS twin ON twin.sent = samples.sent"
        " JOIN against AS other ON other.rowid = twin.first ORDER BY samples.row"
    )
    for row, *first in shared:
        yield Hit(f"the row stands in {place_of_row(*first)} too", "drop it here or there", row=row)


@dataset_rule("MM715")
def missing_media(store: Store) -> Iterator[Hit]:
    """A few rows have no medium, and nearly all have one."""
    held = "FROM samples WHERE sent IS NOT NULL AND row {} IN (SELECT row FROM media)"
    with_media = next(store.query(f"SELECT COUNT(*) {held.format('')}"))[0]
    without = next(store.query(f"SELECT COUNT(*) {held.format('NOT')}"))[0]
    total = with_media + without
    if not without or total < FEW or with_media < NEARLY_ALL * total:
        return
    for (row,) in store.query(f"SELECT row {held.format('NOT')} ORDER BY row"):
        yield Hit(f"the row has no medium, and {with_media} of {total} rows have one", "name its medium", row=row)
