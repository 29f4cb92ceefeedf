"""The journal of a run in shards keeps every line, whoever has written it since the run was killed."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from mmprompt.run.journal import JournalLine
from mmprompt.run.manifest import Manifest
from mmprompt.scale.journals import ShardJournals
from mmprompt.scale.plan import plan_shards
from mmprompt.scale.work_folder import WorkFolder
from mmprompt.tasks.load import load_task

MANIFEST = Manifest(None, {"path": None, "size": None}, "m", "vllm", {}, "GenInferencer")


def line(row: int) -> bytes:
    return JournalLine(row, f"r{row}", prediction=str(row)).to_json()


@pytest.fixture
def killed(tmp_path: Path) -> tuple[Path, ShardJournals]:
    """Give the journal of a run whose shards had one answer each when it was killed, beside one that stood before."""
    data, journal = tmp_path / "data.jsonl", tmp_path / "out.jsonl"
    data.write_text("".join(f'{{"id": "r{n}", "question": "q"}}\n' for n in range(6)), encoding="utf-8")
    journal.write_bytes(line(0))
    dataset = load_task({}, str(data)).dataset
    assert dataset is not None
    folder, shards = WorkFolder(str(tmp_path / "work")), plan_shards(dataset, 2)
    folder.begin({}, shards)
    journals = ShardJournals(str(journal), folder, shards)
    journals.seed(MANIFEST)
    for number in range(3):
        with open(journals.path(number), "ab") as file:
            file.write(line(2 * number + 1))
    return journal, journals


@pytest.mark.parametrize("lines", [0, 1, 3])
def test_a_merge_that_was_killed_is_taken_back(killed: tuple[Path, ShardJournals], lines: int) -> None:
    journal, journals = killed
    journal.write_bytes(b"".join([line(0), line(1), line(3), line(5)][: 1 + lines]))
    journals.seed(MANIFEST)
    journals.merge()
    assert journal.read_bytes() == line(0) + line(1) + line(3) + line(5)


@pytest.mark.parametrize("since", [line(0) + line(2) + line(4), line(4), b""])
def test_what_another_run_has_written_since_stays(killed: tuple[Path, ShardJournals], since: bytes) -> None:
    journal, journals = killed
    journal.write_bytes(since)
    journals.seed(MANIFEST)
    answered = [journals.answered(number) for number in range(3)]
    journals.merge()
    assert journal.read_bytes() == since + line(1) + line(3) + line(5)
    assert sum(answered) == len(journal.read_bytes().splitlines())


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("files", range(7))
def test_a_run_that_was_killed_while_its_folder_was_removed_goes_on(
    killed: tuple[Path, ShardJournals], files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, journals = killed
    folder = WorkFolder(str(journal.with_name("work")))
    shards = folder.resumed({})
    journals.merge()
    left, unlink = iter(range(files)), os.unlink

    def counted(path: str) -> None:
        if next(left, None) is None:
            raise Killed
        unlink(path)

    with monkeypatch.context() as here, contextlib.suppress(Killed):
        here.setattr(os, "unlink", counted)
        folder.remove()
    if folder.resumed({}) is None:
        assert files == 6  # all of them
        return
    assert folder.resumed({}) == shards
    journals.seed(MANIFEST)
    journals.merge()
    assert journal.read_bytes() == line(0) + line(1) + line(3) + line(5)
