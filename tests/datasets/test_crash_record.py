"""The record of the row that a process works on: a death is counted, and a row that ended two is left out."""

from __future__ import annotations

import os
import struct

import pytest

from mmprompt.datasets.crash_record import CrashRecord
from mmprompt.datasets.sample import Sample
from mmprompt.errors import RowError, TaskError

ROWS = [Sample({}, f"id{number}", "data.jsonl", number + 2, number, True) for number in range(8)]


def die(path, at, session=1):
    """Work as a process that dies of a row: it never closes its record. Return the rows before."""
    seen = []
    for row in CrashRecord(str(path), session).rows(iter(ROWS)):
        if isinstance(row, Sample) and row.row == at:
            return seen
        seen.append(row)
    raise AssertionError("it did not die")


def fail(rows):
    for _ in rows:
        raise ZeroDivisionError


def finish(path, session=1, work=list):
    with CrashRecord(str(path), session) as record:
        return work(record.rows(iter(ROWS)))


def test_a_row_that_ended_one_process_is_tried_again(tmp_path):
    die(tmp_path / "row", 3)
    assert finish(tmp_path / "row") == ROWS


def test_rows_that_ended_two_processes_are_left_out_with_an_error(tmp_path):
    for at in (3, 3, 6, 6):
        die(tmp_path / "row", at)
    rows = finish(tmp_path / "row")
    assert [row for row in rows if isinstance(row, Sample)] == [row for row in ROWS if row.row not in (3, 6)]
    error = rows[3]
    assert isinstance(error, RowError)
    assert (error.code, error.where.file, error.where.line, error.where.sample) == ("MM902", "data.jsonl", 5, "id3")
    assert "ended the process" in str(error)


def test_the_next_run_knows_the_deaths_but_not_the_row_at_which_the_whole_run_was_stopped(tmp_path):
    die(tmp_path / "row", 3, session=1)
    die(tmp_path / "row", 5, session=1)
    die(tmp_path / "row", 5, session=2)
    assert finish(tmp_path / "row", session=3) == ROWS
    die(tmp_path / "row", 3, session=3)
    rows = finish(tmp_path / "row", session=3)
    assert [row.where.line for row in rows if isinstance(row, RowError)] == [5]


def test_a_record_that_the_version_before_left_keeps_its_deaths(tmp_path):
    """It had no number of rows done: where the file begins stand row, session, deaths elsewhere, deaths, their rows."""
    (tmp_path / "row").write_bytes(struct.pack("6q", 3 + 2, 1, 0, 2, 3, 6) + bytes(8 * 506))
    rows = finish(tmp_path / "row")
    assert [row.where.line for row in rows if isinstance(row, RowError)] == [5]
    die(tmp_path / "row", 6)
    assert len([row for row in finish(tmp_path / "row") if isinstance(row, RowError)]) == 2


def test_an_error_is_no_death(tmp_path):
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            finish(tmp_path / "row", work=fail)
    assert finish(tmp_path / "row") == ROWS


def test_a_shard_whose_process_dies_outside_its_rows_is_given_up(tmp_path):
    for _ in range(5):
        CrashRecord(str(tmp_path / "row"), 1)
    with pytest.raises(TaskError, match="died 5 times outside its rows") as caught:
        CrashRecord(str(tmp_path / "row"), 1)
    assert caught.value.code == "MM902"
    assert finish(tmp_path / "row") == ROWS  # the next run may try


def test_a_finished_record_leaves_no_file(tmp_path):
    record = CrashRecord(str(tmp_path / "row"), 1)
    list(record.rows(iter(ROWS)))
    record.remove()
    assert os.listdir(tmp_path) == []
