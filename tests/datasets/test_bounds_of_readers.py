"""Damaged and hostile files: one row costs one row, nothing is left out silently, and no foreign exception escapes."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from mmprompt import DatasetError, MMPromptError, load_task
from mmprompt.datasets.read import open_dataset
from mmprompt.datasets.sample import Sample

ROWS = b"".join([json.dumps({"question": os.urandom(20).hex()}).encode() + b"\n" for _ in range(3000)])


def tar(path: Path, *members: tuple[str, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def asked(rows: list[dict[str, object]], task: dict[str, object] | None = None) -> tuple[list[str], list[str]]:
    errors: list[MMPromptError] = []
    loaded = load_task(task or {}, {"rows": rows})
    texts = [str(request["messages"][0]["content"]) for request in loaded.requests(on_error=errors.append)]
    return texts, [str(error) for error in errors]


@pytest.mark.parametrize("at", [12, 20, 5000])
def test_gzip_data_with_flipped_bits_are_a_damaged_file(tmp_path, at):
    packed = bytearray(gzip.compress(ROWS))
    for number in range(at, at + 200):
        packed[number] ^= 0x5A
    (tmp_path / "rows.jsonl.gz").write_bytes(packed)
    with pytest.raises(DatasetError, match="damaged gzip file"):
        list(open_dataset(tmp_path / "rows.jsonl.gz"))


def test_zstandard_data_that_are_damaged_or_cut_off_are_an_error(tmp_path):
    zstandard = pytest.importorskip("zstandard", reason="needs zstandard: pip install zstandard")
    path = tmp_path / "rows.jsonl.zst"
    one = zstandard.ZstdCompressor().compress
    for whole in (one(ROWS), one(ROWS) + one(ROWS), b"\x50\x2a\x4d\x18\x03\0\0\0abc" + one(ROWS)):
        path.write_bytes(whole)
        if whole[:1] == b"\x28":
            assert len(list(open_dataset(path))) in {3000, 6000}
    for cut in (one(ROWS)[:-1000], one(ROWS) + one(ROWS)[:-1], one(ROWS)[:30]):
        path.write_bytes(cut)
        with pytest.raises(DatasetError, match="Zstandard file that is cut off"):
            list(open_dataset(path))
    damaged = bytearray(one(ROWS))
    damaged[5000:5200] = bytes(200)
    path.write_bytes(damaged)
    with pytest.raises(DatasetError, match="damaged Zstandard file"):
        list(open_dataset(path))


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ([("a.json", b"{")], "invalid JSON"),
        ([("a.json", b"[" * 200_000)], "nested deeper"),
        ([("a.json", b'{"question": "\\ud800"}')], "lone surrogate"),
        ([("a.txt", b"one"), ("a.txt", b"two")], "txt (sample a): two members have this extension"),
        ([("a.txt", b"\xff")], "not UTF-8"),
        ([(f"a.{number}", b"") for number in range(10_001)], "10000 members"),
    ],
)
def test_a_faulty_row_of_a_tar_file_costs_itself_alone(tmp_path, members, told):
    path = tar(tmp_path / "rows.tar", *members, ("b.json", b'{"question": "b"}'))
    error, row = open_dataset(path)
    assert told in str(error)
    assert isinstance(row, Sample)
    assert (row.id, row.columns) == ("b", {"question": "b"})


def test_a_long_number_of_a_class_is_text(tmp_path):
    first, second = open_dataset(tar(tmp_path / "rows.tar", ("a.cls", b"9" * 5000), ("b.cls", b"7")))
    assert isinstance(first, Sample)
    assert isinstance(second, Sample)
    assert (first.columns["cls"], second.columns["cls"]) == ("9" * 5000, 7)


def test_a_picture_of_a_tar_file_wins_over_a_field_of_its_name_with_a_note(tmp_path):
    dataset = open_dataset(tar(tmp_path / "rows.tar", ("a.json", b'{"image": "x.jpg"}'), ("a.jpg", b"\xff\xd8\xff")))
    (row,) = dataset
    assert isinstance(row, Sample)
    assert row.columns["image"] == {"bytes": b"\xff\xd8\xff", "path": "jpg"}
    assert "image: this field of the .json is left out" in dataset.notes[0]


def test_a_value_that_python_cannot_hold_costs_its_own_row(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'mmprompt[parquet]'")
    text = pa.StringArray.from_buffers(3, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0"), pa.py_buffer(b"a\xffc"))
    for column in (pa.array([1, 2**62, 1], pa.timestamp("s")), text):
        table = pa.table({"question": ["a", "b", "c"], "more": column})
        with pa.OSFile(str(tmp_path / "rows.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        rows = list(open_dataset(tmp_path / "rows.arrow"))
        assert [isinstance(row, Sample) for row in rows] == [True, False, True]
        assert "(sample 1): the row cannot be read" in str(rows[1])


def test_two_columns_of_one_name_are_refused(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'mmprompt[parquet]'")
    from pyarrow import parquet

    table = pa.table([pa.array(["a"]), pa.array(["b"])], names=["question", "question"])
    parquet.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(DatasetError, match="two columns are named 'question'"):
        list(open_dataset(tmp_path / "rows.parquet"))


@pytest.mark.parametrize("description", ["[" * 200_000, '{"splits": [".."]}'])
def test_the_description_of_a_saved_dataset_leads_nowhere_else(tmp_path, description):
    (tmp_path / "state.json").write_text('{"_data_files": [{"filename": "rows.arrow"}]}')
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "dataset_dict.json").write_text(description)
    with pytest.raises(DatasetError, match="no dataset was found"):
        open_dataset(tmp_path / "saved")


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ({"A": "x", "a": "y", "B": "z"}, "A. x\nB. y\nC. z"),
        ({"text": ["x", "y"], "label": ["B", "A"]}, "A. y\nB. x"),
        ({"text": ["x", "y"], "label": ["1", "2"]}, "A. x\nB. y"),
        ([{"label": "A", "text": "x"}, {"label": "B", "text": "y"}], "A. x\nB. y"),
        (["A. x", "(B) y"], "A. x\nB. y"),
    ],
)
def test_choices_keep_their_letters_and_texts(options, lines):
    assert asked([{"question": "Q", "options": options}]) == ([f"Q\n{lines}"], [])


def test_choices_that_pandas_holds_are_a_list():
    numpy = pytest.importorskip("numpy")
    options = numpy.array(["cat", "dog"], dtype=object)
    assert asked([{"question": "Q", "options": options}]) == (["Q\nA. cat\nB. dog"], [])


def test_choices_without_their_question_are_an_error():
    texts, (error,) = asked([{"Question": "Q", "options": ["x", "y"]}])
    assert texts == []
    assert "the row has choices and no question; name its column with --map COLUMN=question" in error


def test_a_text_that_is_no_list_of_choices_is_not_sent_as_one_choice():
    task = load_task({}, {"rows": [{"question": "Q", "options": "['x', y]"}]})
    assert [request["messages"][0]["content"] for request in task.requests()] == ["Q"]
    hint = 'write them as a list: ["cat", "dog"], or use a task with a template'
    assert task.notes() == [f"the row: the choices in 'options' are not sent; {hint}"]


def test_a_slot_that_is_filled_or_is_an_error_is_no_note():
    template = {"infer_cfg": {"prompt_template": {"type": "PromptTemplate", "template": "{question} {options}"}}}
    task = load_task(template, {"rows": [{"question": "Q", "A": "x", "B": "y"}]})
    assert [request["messages"][0]["content"] for request in task.requests()] == ["Q A. x\nB. y"]
    assert task.notes() == []
