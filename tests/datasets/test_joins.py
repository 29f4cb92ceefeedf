"""Rows of one file joined with those of another: which keys are equal, and what happens where the table cannot grow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mmprompt.datasets.read import open_dataset
from mmprompt.datasets.readers.join import join_table
from mmprompt.errors import DatasetError


@pytest.mark.parametrize(
    ("key", "found"),
    [
        (1, ["one", "text one"]), ("1", ["one", "text one"]), (1.0, ["float"]), ("1.0", ["float"]),
        (True, ["true"]), ("True", ["text True"]), ("true", ["text true"]), (False, []), (0, []),
        (None, []), ("None", ["text None"]), ([1], ["list"]), ("[1]", ["text list"]), ({"a": 1}, []), ("", []),
    ],
)  # fmt: skip
def test_texts_and_numbers_match_and_no_other_types(key: object, found: list[str]) -> None:
    rows = {
        "one": 1, "text one": "1", "float": 1.0, "true": True, "text True": "True", "text true": "true", "null": None,
        "text None": "None", "list": [1], "text list": "[1]",
    }  # fmt: skip
    with join_table() as table:
        for value, own in rows.items():
            table.add(own, value)
        assert table.of(key) == found


def test_a_lone_surrogate_and_bytes_are_keys_like_any_other() -> None:
    with join_table() as table:
        table.add("\ud800", "half")
        assert (table.of("\ud800"), table.of("\ud801"), table.of(b"x")) == (["half"], [], [])


def test_numbers_of_json_match_the_texts_of_a_csv_file(tmp_path: Path) -> None:
    rows = [{"nr": 7, "question": "q"}, {"nr": True, "question": "q"}, {"nr": None, "question": "q"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "gold.csv").write_text("nr,answer\n7,a\nTrue,b\nNone,c\n")
    joined = open_dataset(tmp_path / "rows.jsonl", join=[f"{tmp_path / 'gold.csv'}:nr"])
    assert [row.columns.get("answer") for row in joined] == ["a", None, None]
    assert any("2 rows have no partner" in note for note in joined.notes)


def test_a_table_that_the_disk_cannot_hold_is_an_error_that_says_what_to_do() -> None:
    resource = pytest.importorskip("resource", reason="POSIX")

    def fill() -> None:
        with join_table() as table:
            for key in range(64):
                table.add(key, "x" * (1 << 20))
            table.of(1)

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        with pytest.raises(DatasetError, match="the table that joins rows cannot be written") as caught:
            fill()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "TMPDIR" in caught.value.hint
