"""Samples as rows of a runner's table, and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mmprompt.errors import RowError, TemplateError
from mmprompt.tables import entry_of_row, tables


def test_an_error_has_the_number_and_the_id_of_its_row(tmp_path: Path) -> None:
    lines = [{"id": "q-1", "question": "1+1=?"}, {"id": "q-2", "question": "2+2=?"}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    table = tables(str(tmp_path / "rows.jsonl"))["test"]
    rows = [dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True)]
    with pytest.raises(TemplateError, match=r"^row 2 question \(sample q-2\): empty"), entry_of_row(rows[1]):
        raise TemplateError("empty").located(column="question")


def test_an_error_of_another_dataset_s_row_has_its_id_if_it_has_one() -> None:
    for row, text in (({"index": 7, "q": "?"}, r"^\(sample 7\): empty"), ({"q": "?"}, "^empty")):
        with pytest.raises(TemplateError, match=text), entry_of_row(row):
            raise TemplateError("empty")


def test_a_chat_that_a_template_would_replace_is_refused_with_its_row() -> None:
    carried = json.dumps({"row": 4, "columns": {"id": "c"}, "scanned": False, "list_cells": False, "chat": True})
    with (
        pytest.raises(RowError, match=r"^row 5 \(sample c\): the row is a chat already"),
        entry_of_row({"mmprompt": carried}),
    ):
        pass
