"""Tar files that announce what they do not hold: sparse members, huge sizes, endless headers."""

from __future__ import annotations

import gzip
import sys
import tarfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from mmprompt.datasets.read import open_dataset
from mmprompt.datasets.sample import Sample
from mmprompt.errors import DatasetError, RowError
from mmprompt.scale.plan import plan_shards

HUGE = 40 << 30
BLOCK = 512
END = bytes(20 * BLOCK)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % BLOCK)


def header(name: str, kind: bytes, size: int, sparse: bytes = b"") -> bytes:
    """A header of GNU's format, which writes sizes of any length; ``sparse`` is what it says of a sparse member."""
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT)[-BLOCK:])
    block[386 : 386 + len(sparse)] = sparse
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def member(name: str, data: bytes) -> bytes:
    return header(name, b"0", len(data)) + padded(data)


def number(value: int) -> bytes:
    return b"%011o " % value if value < 8**11 else b"\x80" + value.to_bytes(11, "big")


def gnu(name: str, size: int, more: bytes = b"\0") -> bytes:
    """A sparse member of GNU's format; ``more`` says whether a block with more of its map follows."""
    places = (0, BLOCK, size - BLOCK, BLOCK, 0, 0, 0, 0)
    return header(name, b"S", 2 * BLOCK, b"".join(map(number, places)) + more + number(size))


def attributes(**values: object) -> bytes:
    """A header of POSIX's format with attributes of the next member; ``__`` is a dot."""
    lines = b""
    for name, value in values.items():
        line = f" {name.replace('__', '.')}={value}\n".encode()
        length = next(n for n in range(len(line), len(line) + 10) if len(str(n)) + len(line) == n)
        lines += b"%d%b" % (length, line)
    return header("pax", b"x", len(lines)) + padded(lines)


def posix(body: bytes = bytes(2 * BLOCK), **values: object) -> bytes:
    return attributes(**values) + header("a.jpg", b"0", len(body)) + body


NEXT = member("b.json", b'{"question": "b"}')
BODY = bytes(2 * BLOCK)
NEWEST: dict[str, Any] = {"GNU__sparse__major": 1, "GNU__sparse__minor": 0, "GNU__sparse__name": "a.jpg"}
SPARSE = {
    "GNU, 40 GB": gnu("a.jpg", HUGE) + BODY,
    "GNU, 1.9 GB": gnu("a.jpg", 1900 << 20) + BODY,
    "GNU, small": gnu("a.jpg", 10 * BLOCK) + BODY,
    "GNU, text": gnu("a.txt", 200 << 20) + BODY,
    "POSIX 0.0": posix(GNU__sparse__size=HUGE, GNU__sparse__numblocks=1, GNU__sparse__offset=0, GNU__sparse__numbytes=9),
    "POSIX 0.1": posix(GNU__sparse__map="0,512,1024,512", GNU__sparse__size=HUGE),
    "POSIX 1.0": posix(padded(b"1\n0\n512\n") + BODY, **NEWEST, GNU__sparse__realsize=HUGE),
}  # fmt: skip


def rows(path: Path, data: bytes) -> list[Any]:
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)
    return list(open_dataset(path))


@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.parametrize("file", ["rows.tar", "rows.tar.gz"])
def test_a_sparse_member_is_the_error_of_its_row_and_takes_no_memory(tmp_path: Path, file: str, name: str) -> None:
    data = SPARSE[name] + NEXT + END
    rows(tmp_path / file, NEXT + END)  # loads what reading loads
    tracemalloc.start()
    try:
        error, other = rows(tmp_path / file, data)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert isinstance(error, RowError)
    assert error.what == "the member is stored as a sparse file"
    assert error.where.sample == "a"
    assert isinstance(other, Sample)
    assert other.columns["question"] == "b"


@pytest.mark.parametrize("file", ["rows.tar", "rows.tar.gz"])
@pytest.mark.parametrize("size", [HUGE, 1 << 60, 1 << 64, -1, -1024, -(1 << 60)])
@pytest.mark.parametrize("form", ["GNU", "POSIX"])
def test_a_member_that_is_not_there_ends_the_file_at_once(tmp_path: Path, file: str, size: int, form: str) -> None:
    first = header("a.jpg", b"0", size) if form == "GNU" else posix(size=size)
    begun = time.monotonic()
    with pytest.raises(DatasetError, match="the tar file is damaged"):
        rows(tmp_path / file, NEXT + first + END)
    assert time.monotonic() - begun < 5
    assert len(plan_shards(open_dataset(tmp_path / file))) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="a file without holes takes the disk")
def test_a_member_of_40_gb_is_passed_over_unread(tmp_path: Path) -> None:
    with (tmp_path / "rows.tar").open("wb") as file:
        file.write(header("a.jpg", b"0", HUGE))
        file.seek(HUGE, 1)
        file.write(NEXT + END)
    begun = time.monotonic()
    error, other = open_dataset(tmp_path / "rows.tar")
    assert time.monotonic() - begun < 5
    assert error.code == "MM017"
    assert other.columns["question"] == "b"


@pytest.mark.parametrize(
    "data",
    [
        attributes(comment="x") * 3000 + NEXT,
        header("L", b"L", 3) + padded(b"a.b") + header("L", b"L", 3) * 3000,
        attributes(comment="x" * 900_000) * 6 + NEXT,
        gnu("a.jpg", HUGE, b"\1") + (b"0000000001 0000000001 " * 24)[:504].ljust(504, b"1"),
        gnu("a.jpg", HUGE, b"\1") + (b"00000000001 " * 42 + b"\1" + bytes(7)) * 6_000 + BODY + NEXT,
        posix(GNU__sparse__map="x,y", GNU__sparse__size=HUGE) + NEXT,
        posix(padded(b"x\n"), **NEWEST, GNU__sparse__realsize=9) + NEXT,
        posix(padded(b"9999999\n" + b"1\n" * 1_500_000), **NEWEST, GNU__sparse__realsize=9),
        posix(padded(b"99999999999\n" + b"1\n" * 99999), **NEWEST, GNU__sparse__realsize=9),
    ],
    ids=["many", "names", "long", "cut map", "long map", "map 0.1", "map 1.0", "long map 1.0", "cut map 1.0"],
)
def test_headers_without_end_are_a_damaged_file(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(DatasetError, match="the tar file is damaged"):
        rows(tmp_path / "rows.tar.gz", data + END)
    assert len(plan_shards(open_dataset(tmp_path / "rows.tar.gz"))) == 1
