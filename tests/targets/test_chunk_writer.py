"""Chunks reach the file whole and in order, whatever the kernel takes at once."""

from __future__ import annotations

import gzip
import io
import os
import signal
import sys
import threading

import pytest

from mmprompt.targets import chunk_writer
from mmprompt.targets.chunk_writer import AT_ONCE, ChunkWriter

RECORDS = [[b"%d," % number, b"x" * (number * 37 % 5000), b"", b"\n"] for number in range(3000)]
WHOLE = b"".join(b"".join(record) for record in RECORDS)


def write_all(file: object) -> int:
    with ChunkWriter(file) as writer:
        for record in RECORDS:
            writer.write(record)
    return writer.bytes_written


def test_to_a_file_and_to_a_descriptor(tmp_path):
    with open(tmp_path / "a", "wb") as file:
        assert write_all(file) == len(WHOLE)
    fd = os.open(tmp_path / "b", os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0))
    assert write_all(fd) == len(WHOLE)
    os.close(fd)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == WHOLE


def test_what_the_file_held_before_comes_first(tmp_path):
    with open(tmp_path / "a", "wb") as file:
        file.write(b"head\n")
        write_all(file)
        file.write(b"tail\n")
    assert (tmp_path / "a").read_bytes() == b"head\n" + WHOLE + b"tail\n"


def test_to_files_that_are_no_descriptor(tmp_path):
    memory = io.BytesIO()
    assert write_all(memory) == len(WHOLE)
    assert memory.getvalue() == WHOLE
    with gzip.open(tmp_path / "a.gz", "wb") as file:
        write_all(file)
    with gzip.open(tmp_path / "a.gz") as file:
        assert file.read() == WHOLE


def test_without_writev(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "writev", raising=False)
    with open(tmp_path / "a", "wb") as file:
        write_all(file)
        file.flush()
        write_all(file.fileno())
    assert (tmp_path / "a").read_bytes() == WHOLE + WHOLE


def test_small_records_wait_and_large_ones_do_not(tmp_path):
    with open(tmp_path / "a", "wb") as file:
        writer = ChunkWriter(file)
        writer.write([b"x" * 100])
        assert os.path.getsize(tmp_path / "a") == 0
        writer.write([b"y" * AT_ONCE])
        assert os.path.getsize(tmp_path / "a") == writer.bytes_written == AT_ONCE + 100


def test_an_error_in_the_block_writes_nothing_more(tmp_path):
    def write_half(file: object) -> None:
        with ChunkWriter(file) as writer:
            writer.write([b"half a record"])
            raise KeyError

    with open(tmp_path / "a", "wb") as file, pytest.raises(KeyError):
        write_half(file)
    assert (tmp_path / "a").read_bytes() == b""


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of Windows cannot be non-blocking here")
@pytest.mark.parametrize("blocking", [True, False])
def test_a_pipe_takes_large_records_part_by_part(blocking):
    read, write = os.pipe()
    os.set_blocking(write, blocking)
    got = bytearray()

    def drain() -> None:
        while piece := os.read(read, 10_000):
            got.extend(piece)

    reader = threading.Thread(target=drain)
    reader.start()
    writer = ChunkWriter(write)
    for _ in range(3):
        writer.write([b"a" * 1_000_003, b"", b"b" * 77_777, *[b"c"] * 2500])
    writer.flush()
    os.close(write)
    reader.join(20)
    assert bytes(got) == (b"a" * 1_000_003 + b"b" * 77_777 + b"c" * 2500) * 3
    os.close(read)


@pytest.mark.skipif(not hasattr(os, "writev"), reason="no writev")
def test_a_record_larger_than_a_call_takes_is_written_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(chunk_writer, "_LARGEST_CALL", 1000)
    chunks = [b"%07d" % size * size for size in (1, 50_000, 0, 142, 143, 20_000)]
    with open(tmp_path / "a", "wb") as file, ChunkWriter(file) as writer:
        writer.write(chunks)
    assert (tmp_path / "a").read_bytes() == b"".join(chunks)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer")
def test_signals_during_a_write_lose_nothing():
    read, write = os.pipe()
    got = bytearray()

    def drain() -> None:
        while piece := os.read(read, 3000):
            got.extend(piece)

    reader = threading.Thread(target=drain)
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        reader.start()
        writer = ChunkWriter(write)
        writer.write([b"a" * 3_000_000, b"b" * 3_000_000])
        writer.flush()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.close(write)
        reader.join(20)
        signal.signal(signal.SIGALRM, before)  # at the end: the last signal may still be on its way
    assert bytes(got) == b"a" * 3_000_000 + b"b" * 3_000_000
    os.close(read)
