"""A row longer than 256 MiB is an error of that row, and costs no more memory than the longest one that is read."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from mmprompt.datasets import csv_rows, json_rows, jsonl
from mmprompt.datasets.read import open_dataset
from mmprompt.datasets.readers import webdataset
from mmprompt.datasets.sample import Sample
from mmprompt.errors import DatasetError

SHORT, LONG = '"a"', '"' + "x" * 2000 + '"'


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the bound to 1000."""
    for module in (jsonl, json_rows, csv_rows, webdataset):
        monkeypatch.setattr(module, "LONGEST_ROW", 1000)
    monkeypatch.setattr(json_rows, "_CHUNK", 256)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("thorough", [False, True])
@pytest.mark.parametrize("size", [900, 1100, 70_000])
def test_a_long_line_costs_itself_alone(size: int, thorough: bool, tmp_path: Path) -> None:
    line = '{"q": "' + "x" * (size - 9) + '"}'
    (tmp_path / "rows.jsonl").write_text(f'{{"q": "a"}}\n{line}\n\n{{"q": "b"}}\n{line}')
    rows = list(open_dataset(tmp_path / "rows.jsonl", thorough=thorough))
    fits = size < 1000
    assert [isinstance(row, Sample) for row in rows] == [True, fits, True, fits]
    assert (rows[2].line, rows[2].row, rows[2].columns) == (4, 2, {"q": "b"})
    if not fits:
        assert rows[1].where.line == 2
        assert "the row is longer than" in rows[1].what


@pytest.mark.usefixtures("_small")
def test_a_long_row_of_an_array_ends_it_with_an_error(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(f'[{{"q": {SHORT}}}, {{"q": {LONG}}}, {{"q": {SHORT}}}]')
    first, error = open_dataset(tmp_path / "rows.json")
    assert first.columns == {"q": "a"}
    assert "the row is longer than" in error.what


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize(
    "long", ["x" * 2000, '"' + "x\n" * 1000 + '"', '"' + "x" * 2000 + '\n"', '"a\n' + "x" * 2000 + '"', "x," * 1000]
)
def test_a_long_record_costs_itself_alone(long: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(f"q,r\na,b\n{long},c\nd,e\n")
    first, error, last = open_dataset(tmp_path / "rows.csv")
    assert (first.columns, last.columns) == ({"q": "a", "r": "b"}, {"q": "d", "r": "e"})
    assert "the row is longer than" in error.what


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("name", ["a.json", "a.txt", "a.cls", "a.other"])
def test_a_long_member_costs_its_row_alone(name: str, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "rows.tar", "w") as archive:
        for member, size in ((name, 1001), ("b.txt", 1000), ("c.jpg", 5000)):
            info = tarfile.TarInfo(member)
            info.size = size
            archive.addfile(info, io.BytesIO(b"x" * size))
    error, text, picture = open_dataset(tmp_path / "rows.tar")
    assert (error.where.sample, error.where.column) == ("a", name[2:])
    assert "is longer than" in error.what
    assert (text.columns["txt"], len(picture.columns["image"]["bytes"])) == ("x" * 1000, 5000)


def test_a_long_name_in_a_tar_file_is_not_read(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "rows.tar", "w", format=tarfile.GNU_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo("a" * (2 << 20)))
    with pytest.raises(DatasetError, match=r"a header of \d+ bytes"):
        list(open_dataset(tmp_path / "rows.tar"))


READ = """
import resource, sys
from mmprompt.datasets.read import open_dataset
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = [getattr(row, "what", "a row") for row in open_dataset(sys.argv[1])]
print(rows, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="counts KiB")
@pytest.mark.parametrize("name", ["rows.jsonl.gz", "rows.tar.gz"])
def test_a_row_of_600_mib_takes_no_more_than_the_bound_allows(name: str, tmp_path: Path) -> None:
    with gzip.open(tmp_path / name, "wb", compresslevel=1) as file:
        if name == "rows.tar.gz":
            info = tarfile.TarInfo("a.json")
            info.size = 600 << 20
            file.write(info.tobuf())
        file.write(b'{"q": "')
        for number in range(600):
            file.write(b"x" * ((1 << 20) - (0 if number else 7)))
        tail = tarfile.TarInfo("b.json")
        tail.size = 10
        file.write(tail.tobuf() + b'{"q": "b"}' + bytes(502 + 1024) if name == "rows.tar.gz" else b'"}\n{"q": "b"}\n')
    done = subprocess.run(
        [sys.executable, "-c", READ, tmp_path / name], capture_output=True, text=True, check=True, timeout=120
    )
    rows, grown = done.stdout.rsplit(" ", 1)
    assert rows.endswith(", 'a row']")
    assert "longer than 256 MiB" in rows
    assert int(grown) < 700
