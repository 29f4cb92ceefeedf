"""Any cut of a file gives the rows of the whole file, with their numbers, their errors and the notes on them."""

from __future__ import annotations

import io
import json
import random
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from mmprompt.datasets.read import Dataset, open_dataset, rows_dataset
from mmprompt.datasets.sample import Sample
from mmprompt.errors import TaskError
from mmprompt.scale import plan_shards

CELLS = [
    "plain", "", " ", 'he said "hi"', '"', '""', '5" screen', '"quoted"', '"a,b"', '"line\nbreak"', '"line\r\nbreak"',
    '"doubled "" quote"', '"unclosed', 'x"y"z', "\ufeff", "\u4e2d\u6587", "\x00", '"tail"tail', "\r", "\u2028", "\x0b",
]  # fmt: skip
LINES = [
    '{"id": 1, "content": "a"}', '{"content": "b"}', "", " ", "\t", "\r", "\x0b\x0c", "\ufeff", '\ufeff{"content": "c"}', "{bad",
    "[1]", "null", '  {"content": "d"}', '{"content": "e"}\r', '{"id": NaN, "content": "f"}', '{"id": "g", "id": "h"}',
    '{"content": "\\ud800"}',
]  # fmt: skip


def rows_of(dataset: Dataset) -> list[object]:
    """Return the rows, errors by their data, and at the end the notes."""
    found = [row if isinstance(row, Sample) else (type(row).__name__, row.args) for row in dataset]
    return json.loads(json.dumps(found, default=str))


def assert_cuts(path: Path | list[Path], rows: int, name: str | None = None) -> int:
    """Compare the shards of a dataset with the whole; return how many there are."""
    dataset = open_dataset(path, format=name)
    whole, notes = rows_of(dataset), dataset.notes
    shards = json.loads(json.dumps(plan_shards(open_dataset(path, format=name), rows)))
    merged = open_dataset(path, format=name)
    cut: list[object] = []
    for shard in shards:
        part = merged.over(shard)
        own = rows_of(part)
        assert shard["rows"] in (len(own), None)
        assert shard["first"] == len(cut)
        cut += own
        merged.remarks.add_state(json.loads(json.dumps(part.remarks.state)))
    assert cut == whole
    assert merged.notes == notes
    return len(shards)


def csv_text(chance: random.Random) -> str:
    end = chance.choice(["\n", "\r\n", "\r"])
    records = [
        ",".join(chance.choices(CELLS, k=chance.choice([2, 2, 2, 2, 1, 3]))) for _ in range(chance.randrange(12))
    ]
    start = chance.choice(["", "\ufeff", end])
    return start + end.join(["id,content", *records]) + chance.choice(["", end, end + end])


def semicolon_text(chance: random.Random) -> str:
    return csv_text(chance).replace(";", " ").replace(",", ";")


def declared_text(chance: random.Random) -> str:
    return "sep=|\n" + csv_text(chance).removeprefix("\ufeff").replace(",", "|")


def jsonl_text(chance: random.Random) -> str:
    return "\n".join(chance.choices(LINES, k=chance.randrange(12))) + chance.choice(["", "\n", "\n\n", "\n "])


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (csv_text, "rows.csv"),
        (semicolon_text, "rows.csv"),
        (declared_text, "rows.csv"),
        (jsonl_text, "rows.jsonl"),
    ],
)
def test_any_cut_gives_the_rows_of_the_whole_file(make: Callable[..., str], name: str, tmp_path: Path) -> None:
    chance, cuts = random.Random(17), 0  # the same texts each time
    path = tmp_path / name
    for _ in range(150):
        first = '{"content": "first"}\n' if name.endswith("jsonl") else ""
        path.write_bytes((first + make(chance)).encode())
        cuts += assert_cuts(path, chance.randrange(1, 4), path.suffix[1:])
    assert cuts > 300


def test_lines_longer_than_a_block_are_counted_once(tmp_path: Path) -> None:
    long = json.dumps({"content": "x" * (9 << 20)})
    path = tmp_path / "long.jsonl"
    path.write_text(f"{long}\n\n{' ' * (9 << 20)}\n{long}\n{{}}\n{long}", encoding="utf-8")
    assert assert_cuts(path, 1) == 4


def test_several_files_are_numbered_on(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.jsonl" for name in "abc"]
    for path in paths:
        path.write_text('{"content": "a"}\n\n{"id": "x", "content": "b"}\n{bad\n{"id": 3, "content": "c"}\n', "utf-8")
    assert assert_cuts(paths, 2) == 6


@pytest.mark.parametrize("field", ["json", "txt"])
def test_tar_files_are_cut_between_rows(field: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.tar"
    with tarfile.open(path, "w") as archive:
        for number in range(7):
            name = f"{'long/' * 30}{number}"  # names that need a header of their own
            for extension, data in ((field, b'{"a": 1}'), ("jpg", b"x" * number * 300), ("cls", b"4")):
                member = tarfile.TarInfo(f"{name}.{extension}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    assert assert_cuts(path, 2) == 4


@pytest.mark.parametrize("chats", [True, False])
def test_parquet_files_are_cut_between_row_groups(chats: bool, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'mmprompt[parquet]'")
    parquet = pytest.importorskip("pyarrow.parquet")
    talk = [{"role": "user", "content": "hello"}]
    rows = [{"question": str(n), "messages": talk} if chats else {"question": str(n)} for n in range(20)]
    path = tmp_path / "rows.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=3)
    assert assert_cuts(path, 5) == 4


def test_what_cannot_be_cut_is_one_shard(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text('[{"content": "a"}, {"content": "b"}]', encoding="utf-8")
    assert assert_cuts(path, 1) == 1
    with pytest.raises(TaskError, match="can be read only once"):
        plan_shards(rows_dataset(iter([{"content": "a"}])))
