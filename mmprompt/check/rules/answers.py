"""Rules on questions, answers and choices."""

from __future__ import annotations

from collections.abc import Iterator

from mmprompt.check.rule import CheckedRow, Hit, row_rule
from mmprompt.datasets.choices import is_empty


@row_rule("MM701")
def missing_answer(row: CheckedRow) -> Iterator[Hit]:
    """The answer is null or blank."""
    column = row.task.output_column
    if column in row.columns and is_empty(row.answer):
        yield Hit(
            f"'{column}' is {'null' if row.answer is None else 'blank'}", "give the answer, or drop the row", column
        )
