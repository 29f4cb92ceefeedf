from __future__ import annotations

import gzip
import json
import pickle
import re
from pathlib import Path

import pytest

from mmprompt.datasets.read import open_dataset, rows_dataset
from mmprompt.datasets.sample import Sample
from mmprompt.errors import DatasetError, RowError

TOUR = Path(__file__).parents[2] / "fixtures" / "tour"


def opened(tmp_path: Path, data: str | bytes, name: str = "data", format_name: str | None = None):
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return open_dataset(path, format=format_name)


@pytest.mark.parametrize(
    ("data", "name", "expected"),
    [
        ('{"content": "x"}\n', "data", "jsonl"),
        ('{"content": "x"}', "data.json", "jsonl"),
        ('\ufeff\n{"content": "x"}\n', "data", "jsonl"),
        ('["not a row"]\n{"content": "x"}\n', "data", "jsonl"),
        ('{"cut": "off\n{"content": "x"}\n', "data", "jsonl"),
        ('{"cut": "off\n', "data", "jsonl"),
        ('garbage\n{"content": "x"}\n', "data", "jsonl"),
        ('{"content": "' + "x" * 300_000 + '"}\n', "data", "jsonl"),
        ("", "data", "jsonl"),
        ('{"cut\n{"messages": [{"role": "user", "content": "x"}]}', "data", "openai"),
        ('{"messages": "no chat"}', "data", "jsonl"),
        ('{"type": "image", "path": "a.jpg"}', "data", "mm_custom"),
        ('{"type": "question", "path": "a.jpg"}', "data", "jsonl"),
        ('[{"a": 1}]', "data", "json"),
        ('[{"a": 1},\n{"a": 2}]', "data", "json"),
        ("[\n  {\n", "data", "json"),
        ("id,question\n1,x\n", "data", "csv"),
        ("id\tquestion, please\n1\tx\n", "data", "tsv"),
        ("question\nx\n", "data.csv", "csv"),
        ('"{",b\nx,1\n', "data.csv", "csv"),
    ],
)
def test_the_format_is_recognised_from_content(tmp_path, data, name, expected):
    assert opened(tmp_path, data, name).format == expected


def test_a_format_can_be_forced(tmp_path):
    (row,) = opened(tmp_path, '{"type": "image", "path": "a.jpg", "question": "q"}', format_name="jsonl")
    assert "content" not in row.columns
    (row,) = opened(tmp_path, "a,b\nx,y\n", "rows.txt", "csv")
    assert row.columns == {"a": "x", "b": "y"}


@pytest.mark.parametrize(
    ("data", "name", "what"),
    [
        (b"\x1f\x8b\x08\x00", "data.jsonl.gz", "gzip"),
        (b"PK\x03\x04", "data.xlsx", "zip"),
        ('{"a": 1}\n'.encode("utf-16"), "data.jsonl", "UTF-16"),
        (b"\x00\x01\x02\x03", "data.bin", "binary"),
        (b"just words\n", "data", "it begins with 'just words'"),
        (b'"a, b"\n', "data", "in an unknown dataset format"),
        (b"3,4", "rows.json", "in an unknown dataset format"),
    ],
)
def test_what_is_no_dataset_is_refused_by_name(tmp_path, data, name, what):
    with pytest.raises(DatasetError, match=what):
        opened(tmp_path, data, name)


@pytest.mark.parametrize(
    ("data", "name", "what"),
    [
        (b"PAR1\x15\x04", "rows.parquet", "damaged"),
        (b"ARROW1\0\0", "rows.arrow", "damaged"),
        (b"\x1f\x8b\x08\x00", "rows.jsonl.gz", "gzip"),
        (b"a.jpg".ljust(257, b"\0") + b"ustar\x0000".ljust(255, b"\0"), "rows.tar", "tar file is damaged"),
    ],
)
def test_a_damaged_file_is_an_error_that_says_what_it_is(tmp_path, data, name, what):
    if what == "damaged":
        pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'mmprompt[parquet]'")
    with pytest.raises(DatasetError, match=what):
        list(opened(tmp_path, data, name))


def test_opening_faults_are_dataset_errors(tmp_path):
    with pytest.raises(DatasetError, match="no such file"):
        open_dataset(tmp_path / "nothing.jsonl")
    with pytest.raises(DatasetError, match="is a directory"):
        open_dataset(tmp_path)
    with pytest.raises(DatasetError, match="cannot read"):
        open_dataset("a\0b")
    with pytest.raises(DatasetError, match="did you mean 'jsonl'") as caught:
        opened(tmp_path, "{}", format_name="jsonnl")
    assert not isinstance(caught.value, RowError)


def test_the_root_is_the_directory_of_the_file_as_given(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "data.jsonl").write_text("{}\n", "utf-8")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real" / "data.jsonl")
    monkeypatch.chdir(tmp_path)
    assert open_dataset("link.jsonl").root == "."
    assert open_dataset("real/data.jsonl").root == "real"
    assert open_dataset(tmp_path / "link.jsonl").root == str(tmp_path)


def test_rows_given_in_python_are_samples_as_they_are():
    rows = [{"id": 1, "image": b"\xff\xd8"}, {"image": ["a.jpg"], "content": None}]
    dataset = rows_dataset(rows)
    assert (dataset.path, dataset.root, dataset.format) == (None, None, "rows")
    first, second = dataset
    assert first == Sample(rows[0], 1, None, 1, 0, True)
    assert first.columns is rows[0]
    assert (second.id, second.row, second.label) == (1, 1, "1")
    assert list(dataset) == [first, second]


def test_the_rows_of_a_pandas_frame_are_read_and_can_be_read_again():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": [7, 8], "question": ["q", "r"], "image": [None, float("nan")]}, index=[3, 1])
    dataset = rows_dataset(frame)
    for _ in range(2):
        assert [(row.id, row.row, row.columns["question"]) for row in dataset] == [(7, 0, "q"), (8, 1, "r")]


def test_rows_that_are_no_rows_are_errors_in_their_place():
    good, text, names, last = rows_dataset([{"a": 1}, "text", {1: 2}, {"a": 4}])
    assert isinstance(text, RowError)
    assert isinstance(names, RowError)
    assert str(text).startswith("row 2: ")
    assert (good.row, last.row) == (0, 3)
    with pytest.raises(DatasetError):
        rows_dataset({"a": 1})
    with pytest.raises(DatasetError):
        rows_dataset(3)


def test_an_iterator_of_rows_is_read_once():
    dataset = rows_dataset(iter([{"a": 1}]))
    assert len(list(dataset)) == 1
    with pytest.raises(DatasetError, match="once"):
        list(dataset)


@pytest.mark.parametrize("name", ["tour.jsonl", "tour.csv", "tour.json", "tour_chat.jsonl", "tour_mm_custom.jsonl"])
def test_datasets_and_their_rows_can_be_pickled(name):
    dataset = open_dataset(TOUR / name)
    assert list(pickle.loads(pickle.dumps(dataset))) == list(dataset)
    assert pickle.loads(pickle.dumps(list(dataset))) == list(dataset)


@pytest.mark.parametrize(
    ("name", "content", "hint"),
    [
        ("rows.xlsx", b"PK\x03\x04rest", "is a zip file; save the sheet as CSV in UTF-8, and give that file"),
        (
            "rows.xls",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16),
            "is a Microsoft Office file; save the sheet as CSV in UTF-8, and give that file",
        ),
        ("rows.zip", b"PK\x03\x04rest", "is a zip file; unpack it, and give the file of its rows"),
        ("rows.db", b"SQLite format 3\0", "is a SQLite file; give a dataset as UTF-8 text"),
    ],
)
def test_a_file_that_is_no_text_says_how_to_give_its_rows(tmp_path: Path, name: str, content: bytes, hint: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError, match=re.escape(hint)):
        open_dataset(tmp_path / name)


@pytest.mark.parametrize("name", ["utf-99", "rot13", "base64", "undefined"])
@pytest.mark.parametrize("end", ["csv", "csv.gz"])
def test_an_encoding_that_is_none_of_texts_is_unknown(tmp_path, name, end):
    data = b"question\nWhat?\n"
    (tmp_path / f"rows.{end}").write_bytes(gzip.compress(data) if end.endswith("gz") else data)
    with pytest.raises(DatasetError, match=f"unknown encoding '{name}'; name one such as utf-16"):
        open_dataset(tmp_path / f"rows.{end}", encoding=name)


@pytest.mark.parametrize("annotations", [[], [None], [True], [5], ["caption"]])
def test_a_file_of_pictures_without_captions_is_none_of_coco(tmp_path, annotations):
    text = json.dumps({"images": [{"file_name": "a.jpg", "id": 1}], "annotations": annotations})
    assert opened(tmp_path, text, "captions.json").format == "json"
    assert opened(tmp_path, text.replace("file_name", "name"), "captions.json").format == "json"
