from __future__ import annotations

import csv
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mmprompt.datasets.read import open_dataset
from mmprompt.datasets.sample import Sample
from mmprompt.errors import DatasetError, RowError

ROOT = Path(__file__).parents[2]
DEFAULT_LIMIT = csv.field_size_limit()


@pytest.fixture(autouse=True)
def _limit_restored():
    yield
    assert csv.field_size_limit() == DEFAULT_LIMIT


def rows_of(tmp_path: Path, data: str | bytes, name: str = "rows.csv", format_name: str | None = None):
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return list(open_dataset(path, format=format_name))


def test_the_tour_arrives_with_the_lines_where_records_begin():
    dataset = open_dataset(ROOT / "fixtures" / "tour" / "tour.csv")
    rows = list(dataset)
    assert dataset.format == "csv"
    assert [(row.id, row.line) for row in rows] == [(f"csv-{n}", line) for n, line in enumerate((2, 3, 4, 5, 7, 8), 1)]
    assert rows[2].columns["image"] == '["media/rocket.jpg", "media/astronaut.jpg"]'
    assert rows[3].columns["question"].endswith("separated by commas:\nMonday, Tuesday, Wednesday.")
    assert rows[4].columns["question"] == 'Translate the line "售票处在二楼" on the sign.'
    assert all(row.scanned for row in rows)


def test_cells_stay_the_text_they_are(tmp_path):
    (row,) = rows_of(tmp_path, "id,a,b,c,d\n007,NA,,1e5, x \n")
    assert row.columns == {"id": "007", "a": "NA", "b": "", "c": "1e5", "d": " x "}
    assert row.id == "007"


def test_tabs_separate_the_cells_of_tsv_and_its_text_is_not_scanned(tmp_path):
    (row,) = rows_of(tmp_path, 'index\timage\tquestion\r\n3\tiVBOR,w0\t"a\tb"\r\n', "rows.tsv")
    assert row.columns == {"index": "3", "image": "iVBOR,w0", "question": "a\tb"}
    assert not row.scanned


def test_rows_with_too_many_or_too_few_cells_are_errors_with_the_numbers(tmp_path):
    first, few, many, last = rows_of(tmp_path, 'a,b\n1,"x\ny"\n\n2\n3,4,5\n  \n6,7\n')
    assert isinstance(few, RowError)
    assert isinstance(many, RowError)
    assert (few.where.line, many.where.line) == (5, 6)
    assert few.what.startswith("the row has 1 cells, but the header has 2")
    assert many.what.startswith("the row has 3 cells, but the header has 2")
    assert (first.line, first.row, last.line, last.row) == (2, 0, 8, 3)


def test_a_header_of_very_many_columns_is_read_at_once(tmp_path):
    names = ",".join(f"c{number}" for number in range(40_000))
    began = time.process_time()
    [row] = rows_of(tmp_path, f"{names}\n{names}\n")
    assert row.columns["c39999"] == "c39999"
    assert time.process_time() - began < 2  # 16 s when each name was looked for in a list


@pytest.mark.parametrize(("header", "what"), [("a,b,a", "'a' twice"), ("a,,b", "column 2"), ("a, ", "column 2")])
def test_a_header_with_repeated_or_empty_names_is_refused(tmp_path, header, what):
    with pytest.raises(DatasetError, match=what) as caught:
        rows_of(tmp_path, f"{header}\n1,2,3\n")
    assert caught.value.where.line == 1


@pytest.mark.parametrize("data", ["", "\n\n"])
def test_a_file_without_a_header_is_refused(tmp_path, data):
    with pytest.raises(DatasetError, match="no header"):
        rows_of(tmp_path, data)


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b'\xef\xbb\xbf"id",q\n1,x\n')
    dataset = open_dataset(path)
    (row,) = dataset
    assert row.columns == {"id": "1", "q": "x"}
    assert dataset.notes == [f"{path}:1: begins with a byte order mark"]


def test_a_huge_cell_is_read_and_the_limit_of_the_csv_module_restored_at_once(tmp_path):
    path = tmp_path / "rows.csv"
    huge = "A" * (3 * DEFAULT_LIMIT)
    path.write_text(f'id,image\n1,{huge}\n2,"{huge}\n{huge}"\n3,x\n', "utf-8")
    rows = iter(open_dataset(path))
    for expected in (huge, f"{huge}\n{huge}", "x"):
        assert next(rows).columns["image"] == expected
        assert csv.field_size_limit() == DEFAULT_LIMIT


def test_broken_bytes_and_nul_spoil_their_row_alone(tmp_path):
    first, latin, nul, last = rows_of(tmp_path, b"a,b\n1,x\n2,caf\xe9\n3,n\0l\n4,caf\xc3\xa9\n")
    assert latin.what == "byte 0xe9 at byte offset 5 of the row is not UTF-8"
    assert "NUL" in nul.what
    assert (latin.where.line, nul.where.line, last.row, last.columns["b"]) == (3, 4, 3, "café")
    assert isinstance(first, Sample)


def test_a_quote_that_is_never_closed_is_an_error_where_its_record_begins(tmp_path):
    first, bad = rows_of(tmp_path, 'a,b\n1,2\n3,"open\n5,6\n')
    assert isinstance(first, Sample)
    assert bad.where.line == 3
    assert "not closed" in bad.what


def test_a_last_line_without_end_and_old_line_ends_are_read(tmp_path):
    assert [row.columns for row in rows_of(tmp_path, "a,b\r1,2\r3,4")] == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]


def test_text_is_utf8_whatever_the_locale(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("q\n售票处\n", "utf-8")
    program = (
        f"from mmprompt.datasets.read import open_dataset\nprint(ascii([*open_dataset({str(path)!r})][0].columns['q']))"
    )
    done = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", program],
        env={"PYTHONPATH": str(ROOT), "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
        check=True,
    )
    assert done.stdout.strip().decode() == ascii("售票处")


@pytest.mark.parametrize("mark", [";", "\t"])
@pytest.mark.parametrize("start", ["", "\ufeff", "\n\n", "sep=;\r\n", '\ufeff"sep=;"\n', "\n\nSEP=;\n"])
def test_a_header_without_commas_is_read_by_the_semicolons_or_tabs_in_it(tmp_path, mark, start):
    text = start + '"Frage,\n(kurz)";id;"a b"\r\n"x;y\nz";1;p, q\r\n2;3\r\n\r\n4;caf\udce9;5\r\n6;7;8\r\n'
    data = text.replace(";", mark).encode("utf-8", "surrogateescape")
    path = tmp_path / "rows.csv"
    path.write_bytes(data)
    dataset = open_dataset(path)
    first, ragged, latin, last = dataset
    lines = [row.line if isinstance(row, Sample) else row.where.line for row in (first, ragged, latin, last)]
    assert [line - start.count("\n") for line in lines] == [3, 5, 7, 8]
    assert first.columns == {"Frage,\n(kurz)": f"x{mark}y\nz", "id": "1", "a b": "p, q"}
    assert first.scanned
    assert ragged.what == "the row has 2 cells, but the header has 3"
    assert latin.code == "MM003"
    assert (last.row, last.id) == (3, "7")
    note = dataset.notes[-1]
    assert note == f"{path}:1: {mark!r} separates the columns, so the file is read with it instead of a comma"
    assert note.code == "MM026"


@pytest.mark.parametrize("mark", [",", "|", ";"])
def test_the_line_with_which_excel_names_the_delimiter_is_no_row(tmp_path, mark):
    path = tmp_path / "rows.csv"
    path.write_text(f"sep={mark}\nid{mark}a b\n1{mark}x\n2\n3{mark}y\n", "utf-8")
    dataset = open_dataset(path)
    first, ragged, last = dataset
    assert (first.columns, first.line, first.row) == ({"id": "1", "a b": "x"}, 3, 0)
    assert (ragged.where.line, last.id, last.line) == (4, "3", 5)
    assert [note.code for note in dataset.notes] == ["MM026"] * (mark != ",")


@pytest.mark.parametrize("header", ["a;b\tc", "a;b|c", "a|b", "Text; as it stands", "question;", "a;b\t"])
def test_a_header_whose_delimiter_is_in_doubt_stays_one_column_and_is_noted(tmp_path, header):
    path = tmp_path / "rows.csv"
    path.write_text(f"{header}\n1\n", "utf-8")
    dataset = open_dataset(path)
    assert [list(row.columns) for row in dataset] == [[header]]
    assert [note.code for note in dataset.notes] == ["MM022"]


@pytest.mark.parametrize(("header", "code"), [("a;b;a", "MM015"), ("a;b;", "MM008")])
def test_the_names_between_semicolons_are_checked_as_those_between_commas(tmp_path, header, code):
    with pytest.raises(DatasetError) as caught:
        rows_of(tmp_path, f"{header}\n1;2;3\n")
    assert caught.value.code == code


def test_semicolons_in_a_file_with_commas_are_text(tmp_path):
    assert [row.columns for row in rows_of(tmp_path, "a;b,c\n1;2,3\n")] == [{"a;b": "1;2", "c": "3"}]
    assert [row.columns for row in rows_of(tmp_path, "a;b\n1;2\n", "rows.tsv")] == [{"a;b": "1;2"}]
