from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mmprompt.datasets.read import open_dataset
from mmprompt.datasets.sample import Sample
from mmprompt.errors import DatasetError, RowError

FIXTURES = Path(__file__).parents[2] / "fixtures"


def samples(rows):
    return [row for row in rows if isinstance(row, Sample)]


def errors(rows):
    return [row for row in rows if isinstance(row, RowError)]


def written(tmp_path: Path, data: bytes | str, name: str = "rows.jsonl") -> str:
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return str(path)


def test_the_tour_arrives_whole_with_lines_and_ids():
    path = str(FIXTURES / "tour" / "tour.jsonl")
    dataset = open_dataset(path)
    rows = list(dataset)
    assert (dataset.format, dataset.path, dataset.root) == ("jsonl", path, str(FIXTURES / "tour"))
    expected = [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]
    assert [row.columns for row in rows] == expected
    assert [(row.id, row.line, row.row, row.file) for row in rows] == [
        (f"tour-{n:02}", n, n - 1, path) for n in range(1, 26)
    ]
    assert all(row.scanned and row.messages is None and row.label == row.id for row in rows)
    assert dataset.notes == []


def test_integer_ids_of_the_column_index_keep_their_type():
    rows = list(open_dataset(FIXTURES / "tour" / "tour_columns.jsonl"))
    assert [row.id for row in rows] == [1, 2, 3, 4, 5, 6, 7, 8, 10]
    assert rows[-1].label == "10"


@pytest.mark.parametrize("thorough", [False, True])
def test_broken_rows_are_errors_in_their_place_and_all_others_arrive(thorough):
    path = str(FIXTURES / "broken" / "broken.jsonl")
    rows = list(open_dataset(path, thorough=thorough))
    assert [error.where.line for error in errors(rows)] == [2, 4, 5]
    assert all(error.where.file == path and error.hint for error in errors(rows))
    assert [error.where.column for error in errors(rows)] == [None, None, "content"]
    assert "array" in errors(rows)[1].what
    lines = [sample.line for sample in samples(rows)]
    assert lines == [n for n in range(1, 50) if n not in (2, 4, 5)]
    assert [sample.row for sample in samples(rows)] == [line - 1 for line in lines]
    good = json.loads((FIXTURES / "broken" / "faults.json").read_text("utf-8"))["good"]
    assert [name for name in (s.id for s in samples(rows)) if name in set(good)] == good


def test_rows_beyond_64_bits_and_nan_are_exact_and_noted():
    dataset = open_dataset(FIXTURES / "broken" / "broken.jsonl")
    rows = {row.line: row for row in samples(dataset)}
    assert rows[45].columns["serial"] == 123456789012345678901234567890
    assert math.isnan(rows[46].columns["score"])
    assert rows[47].columns["answer"] == "4"
    assert [(r.kind, r.column) for line in (1, 45, 46) for r in rows[line].remarks] == [
        ("bom", None),
        ("integer", "serial"),
        ("nan", "score"),
    ]
    assert [note.partition(": ")[0].rpartition(os.sep)[2] for note in dataset.notes] == [
        "broken.jsonl:1",
        "broken.jsonl:45 serial",
        "broken.jsonl:46 score",
    ]


def test_a_thorough_reading_notes_repeated_keys():
    dataset = open_dataset(FIXTURES / "broken" / "broken.jsonl", thorough=True)
    (row,) = [row for row in samples(dataset) if row.line == 47]
    assert [(r.kind, r.column) for r in row.remarks] == [("key", "answer")]
    assert any("broken.jsonl:47 answer" in note for note in dataset.notes)


def test_line_ends_blank_lines_and_a_missing_last_one(tmp_path):
    data = b'\xef\xbb\xbf\r\n{"a": 1}\r\n\r\n  \n{"a": "x\\r"}\r\n\n{"a": 2.0}'
    rows = list(open_dataset(written(tmp_path, data)))
    assert [(row.line, row.row, row.id, row.columns["a"]) for row in rows] == [
        (2, 0, 0, 1),
        (5, 1, 1, "x\r"),
        (7, 2, 2, 2.0),
    ]


def test_ids_come_from_the_first_column_that_is_not_null(tmp_path):
    lines = ['{"id": null, "index": 3}', '{"question_id": "7", "index": null}', '{"id": "1"}', '{"id": [1]}', "{}"]
    rows = list(open_dataset(written(tmp_path, "\n".join(lines))))
    assert [row.id for row in rows] == [3, "7", "1", [1], 4]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b'{"a": "\xff"}', "byte 0xff at byte offset 7 is not UTF-8"),
        (b'{"a": \xed\xa0\x80}', "is not UTF-8"),
        (b"[1]", "this one is an array"),
        (b'"text"', "this one is a string"),
        (b"12", "this one is a number"),
        (b"null", "this one is null"),
        (b"true", "this one is true or false"),
        (b'{"a": 1', "invalid JSON"),
        (b'{"a": 1}{"a": 2}', "invalid JSON"),
        (b'{"a": "\x00"}', "invalid JSON"),
        (b'{"a": ' + b"[" * 3000 + b"]" * 3000 + b"}", "nested"),
        (b'{"a": ' + b"[" * 700 + b"]" * 700 + b"}", "nested"),
        (b'{"a": 1' + b"0" * 5000 + b"}", "number"),
    ],
)
def test_a_bad_line_is_one_row_error_and_reading_goes_on(tmp_path, line, what):
    path = written(tmp_path, b'{"id": 0}\n' + line + b'\n{"id": 2}\n')
    first, bad, last = open_dataset(path)
    assert isinstance(bad, RowError)
    assert what in bad.what
    assert (bad.where.file, bad.where.line) == (path, 2)
    assert (first.id, first.row, last.id, last.row, last.line) == (0, 0, 2, 2, 3)


def test_a_dataset_can_be_read_again_and_closes_its_file(tmp_path):
    dataset = open_dataset(written(tmp_path, '{"a": 1}\n{"a": NaN}\n' * 3))
    assert list(map(str, dataset)) == list(map(str, dataset))
    assert len(dataset.notes) == 1
    assert dataset.notes[0].endswith("(and 2 more)")
    rows = iter(dataset)
    next(rows)
    if os.path.isdir("/proc/self/fd"):
        assert opened(dataset.path) == 1
    rows.close()
    assert opened(dataset.path) == 0


def opened(path: str) -> int:
    """Return how many descriptors of this process lead to a file; 0 where the system does not tell."""
    held = Path("/proc/self/fd")
    leads = [os.path.realpath(number) for number in held.iterdir()] if held.is_dir() else []
    return leads.count(os.path.realpath(path))


def test_a_file_that_vanished_is_a_dataset_error_when_read(tmp_path):
    path = written(tmp_path, '{"a": 1}\n')
    dataset = open_dataset(path)
    os.remove(path)
    with pytest.raises(DatasetError, match="no such file"):
        list(dataset)


def test_standard_input_streams_and_is_read_once(tmp_path):
    program = (
        "import sys\n"
        "from mmprompt.datasets.read import open_dataset\n"
        "from mmprompt.errors import DatasetError\n"
        "dataset = open_dataset('-')\n"
        "for row in dataset:\n"
        "    print(dataset.format, dataset.root, row.file, row.line, row.columns['a'], flush=True)\n"
        "try:\n"
        "    list(dataset)\n"
        "except DatasetError as error:\n"
        "    print(error.what)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": str(FIXTURES.parent)},
    ) as process:
        process.stdin.write(b'{"a": 1}\n')
        process.stdin.flush()
        assert process.stdout.readline() == b"jsonl None - 1 1\n"
        process.stdin.write(b'{"a": "' + b"x" * 300_000 + b'"}\n')
        process.stdin.close()
        assert process.stdout.readline() == b"jsonl None - 2 " + b"x" * 300_000 + b"\n"
        assert process.stdout.readline() == b"'-' can be read only once\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_is_read_like_standard_input(tmp_path):
    path = str(tmp_path / "pipe.jsonl")
    os.mkfifo(path)
    code = f"import signal; signal.alarm(20); open({path!r}, 'w').write('{{\"id\": 5}}\\n' * 3)"  # nobody may read it
    with subprocess.Popen([sys.executable, "-c", code]):
        dataset = open_dataset(path)
        assert [row.id for row in dataset] == [5, 5, 5]
    assert dataset.root is None
