from __future__ import annotations

import json
import math
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmprompt.datasets.read import open_dataset
from mmprompt.datasets.sample import Sample
from mmprompt.errors import DatasetError, RowError

TOUR = Path(__file__).parents[2] / "fixtures" / "tour"


def rows_of(tmp_path: Path, data: str | bytes, format_name: str | None = None):
    path = tmp_path / "rows.json"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return list(open_dataset(path, format=format_name))


def test_the_tour_arrives_with_the_line_of_each_row():
    dataset = open_dataset(TOUR / "tour.json")
    rows = list(dataset)
    assert dataset.format == "json"
    assert [row.columns for row in rows] == json.loads((TOUR / "tour.json").read_text("utf-8"))
    assert [(row.id, row.line, row.row, row.scanned) for row in rows] == [
        ("json-1", 2, 0, True),
        ("json-2", 8, 1, True),
        ("json-3", 14, 2, True),
    ]


def test_numbers_are_exact_and_notes_name_the_row(tmp_path):
    path = tmp_path / "rows.json"
    path.write_text('\ufeff[{"a": 123456789012345678901234567890},\n\n{"a": NaN}]', "utf-8")
    dataset = open_dataset(path)
    big, nan = dataset
    assert big.columns["a"] == 123456789012345678901234567890
    assert math.isnan(nan.columns["a"])
    assert [note.partition(": ")[0] for note in dataset.notes] == [f"{path}:1", f"{path}:1 a", f"{path}:3 a"]


ELEMENTS = st.dictionaries(st.text(max_size=5), st.integers() | st.floats(allow_nan=False) | st.text(max_size=30))


@settings(max_examples=settings().max_examples // 4, deadline=None)
@given(st.lists(ELEMENTS, max_size=8), st.sampled_from([None, 1]), st.integers(65_500, 65_560), st.booleans())
def test_rows_are_whole_wherever_the_window_ends(tmp_path_factory, rows, indent, padding, escaped):
    clean = json.loads(json.dumps(rows, ensure_ascii=False).encode("utf-8", "replace"))
    everything = [{"x": "é" * padding}, *clean, {"x": "y" * 200_000}, *clean]
    path = tmp_path_factory.mktemp("json") / "rows.json"
    path.write_text(json.dumps(everything, indent=indent, ensure_ascii=escaped), "utf-8")
    assert [row.columns for row in open_dataset(path)] == everything


@pytest.mark.parametrize("value", ["1234567890", "-1.5e+300", "true", '"\\ud83d\\ude00"', "NaN", "-Infinity", "{}"])
def test_a_value_cut_by_the_window_is_read_whole(tmp_path, value):
    expected = json.loads(value)
    for shift in range(12):
        text = "[" + " " * (65_536 - 7 - shift) + '{"a":' + value + "}," + value + ',{"b":1}]'
        first, middle, last = rows_of(tmp_path, text, "json")
        assert repr(first.columns["a"]) == repr(expected)
        assert isinstance(middle, RowError if value != "{}" else Sample)
        assert last.columns == {"b": 1}


def test_bad_rows_are_errors_and_reading_goes_on(tmp_path):
    rows = rows_of(tmp_path, b'[{"a": 1},\n[2],\n{"a": "\\ud800"},\n{"a": "\xff"},\n3,\n{"a": 6}]')
    assert [type(row) for row in rows] == [Sample, RowError, RowError, RowError, RowError, Sample]
    assert [row.where.line for row in rows[1:5]] == [2, 3, 4, 5]
    assert rows[2].where.column == "a"
    assert "an array" in rows[1].what
    assert "0xff" in rows[3].what
    assert (rows[5].line, rows[5].row, rows[5].id) == (6, 5, 5)


@pytest.mark.parametrize(
    ("tail", "line", "what"),
    [
        (',\n{"a": tru}]', 2, "invalid JSON"),
        (',\n{"a": "x', 2, "invalid JSON"),
        ("", 1, "not closed"),
        ('\n{"a": 2}]', 2, "expected ','"),
        (",\n]", 2, "invalid JSON"),
        ("]\n[]", 2, "after the end"),
        (',\n{"a": ' + "[" * 300_000, 2, "nested"),
    ],
)
def test_text_that_is_no_json_is_the_last_error(tmp_path, tail, line, what):
    good, bad = rows_of(tmp_path, '[{"a": 1}' + tail, "json")
    assert good.columns == {"a": 1}
    assert isinstance(bad, RowError)
    assert bad.where.line == line
    assert what in bad.what


def test_a_fault_early_in_a_big_file_is_found_without_reading_it_whole(tmp_path):
    path = tmp_path / "rows.json"
    path.write_text('[{"a": 1},\n{"b" 2},\n' + '{"x": 1},\n' * 500_000 + "{}]", "utf-8")
    tracemalloc.start()
    try:
        _, bad = open_dataset(path)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
    assert bad.where.line == 2


@pytest.mark.parametrize("text", ["[]", " [ ] \n", "[\n]"])
def test_an_empty_array_has_no_rows(tmp_path, text):
    assert rows_of(tmp_path, text) == []


def test_an_object_of_several_lists_is_refused_with_their_keys(tmp_path):
    text = json.dumps({"info": {"n": [1]}, "images": [{"id": 1}], "boxes": [{"id": 2}] * 50_000}, indent=1)
    with pytest.raises(DatasetError, match="'images', 'boxes'; name one: --key images"):
        rows_of(tmp_path, text)
    assert [row.id for row in rows_of(tmp_path, '{"data": [{"id": 1}]}')] == [1]
    with pytest.raises(DatasetError, match="one JSON object"):
        rows_of(tmp_path, '{\n"a": 1}')
    with pytest.raises(DatasetError, match="not a JSON array"):
        rows_of(tmp_path, "3", "json")


def test_json_lines_with_commas_behind_them_are_told_how_to_mend_them(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"q": 1},\n{"q": 2},\n')
    with pytest.raises(DatasetError, match=r"one object a line with no comma behind it$"):
        list(open_dataset(str(path)))


@pytest.mark.parametrize(
    ("data", "kind"), [('["a", "b"]', "a string"), ("\n[1]", "a number"), (json.dumps([["a"]] * 5000), "an array")]
)
@pytest.mark.parametrize("key", [None, "data"])
def test_an_array_without_objects_is_one_error_that_shows_a_row(tmp_path, data, kind, key):
    path = tmp_path / "rows.json"
    path.write_text(data if key is None else f'{{"data": {data}}}', "utf-8")
    dataset = open_dataset(path, key=key)
    with pytest.raises(DatasetError) as caught:
        list(dataset)
    assert caught.value.what == f"the array holds no rows: a row must be an object, and this one is {kind}"
    assert caught.value.code == "MM007"
    assert caught.value.where.line == 1 + data.count("\n")
    assert '{"question": ' in caught.value.hint


def test_objects_after_other_elements_are_rows(tmp_path):
    first, second, row, last = rows_of(tmp_path, '["a", 1, {"q": 2}, null]')
    assert [error.what.rpartition(" is ")[2] for error in (first, second, last)] == ["a string", "a number", "null"]
    assert (row.columns, row.row) == ({"q": 2}, 2)
