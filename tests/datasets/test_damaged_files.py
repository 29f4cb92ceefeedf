"""Any damage to a file of any published format is an error of ours, and never another exception."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from published import CASES

from mmprompt import MMPromptError, dataset_task

PIECES = (b"{", b"[", b'"', b"\0", b"null", b"\xff", b",", b"}", b"<image>")


def damaged(data: bytes, rnd: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(rnd.choice([1, 1, 2, 8])):
        at = rnd.randrange(len(made) + 1)
        kind = rnd.randrange(4)
        if kind == 0 and at < len(made):
            made[at] = rnd.randrange(256)
        elif kind == 1:
            del made[at:]
        elif kind == 2:
            made[at:at] = rnd.choice(PIECES)
        else:
            del made[at : at + rnd.randrange(1, 200)]
    return bytes(made)


@pytest.mark.parametrize("tries", [8, pytest.param(30, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_damaged_file_raises_nothing_else(case, tries: int, tmp_path: Path):
    made = case(tmp_path)
    files = (
        [made.path]
        if made.path.is_file()
        else [p for p in made.path.rglob("*") if p.suffix in {".parquet", ".arrow", ".jsonl", ".csv"}]
    )
    rnd = random.Random(case.__name__)
    for _ in range(tries):
        file = rnd.choice(files)
        data = file.read_bytes()
        file.write_bytes(damaged(data, rnd))
        errors: list[MMPromptError] = []
        try:
            for _ in dataset_task(made.path, **made.options).requests(on_error=errors.append):
                pass
        except MMPromptError:
            pass
        file.write_bytes(data)
