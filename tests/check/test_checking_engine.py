"""What the engine does with rows that end decoders, media that many rows share, and datasets that end early."""

from __future__ import annotations

import gzip
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import decode_faults
import pytest
from PIL import Image

from mmprompt.check.checker import Checker
from mmprompt.check.rule import ROW_RULES, CheckedRow, Hit
from mmprompt.check.store import Store
from mmprompt.errors.findings import Finding
from mmprompt.media.policy import MediaPolicy
from mmprompt.tasks.load import dataset_task, load_task
from mmprompt.tasks.task import Task

FAULTS = ("crash", "hang", "swell")


def picture(path: Path, end: bytes = b"", seed: int = 3) -> None:
    Image.linear_gradient("L").rotate(seed * 11).resize((64, 64)).convert("RGB").save(path, "PNG")
    path.write_bytes(path.read_bytes() + end)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def findings_of(task: Task, store: Store, workers: int = 1, **options: Any) -> list[Finding]:
    with closing(Checker(task, **options)) as checker:
        told = [finding for report in checker.check(store, workers) for finding in report.findings]
    assert sorted(told) == sorted(store.findings())
    return told


# ---- decoders that end


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_row_that_ends_its_decoder_is_named_and_all_others_are_checked(
    tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = []
    for number, fault in enumerate(["", *FAULTS, ""]):
        picture(tmp_path / f"{number}.png", fault.encode(), number)
        rows.append({"id": fault or number, "question": f"Why {number}?", "image": f"{number}.png", "answer": "x"})
    Image.new("RGB", (3, 3)).save(tmp_path / "tiny.png")
    rows.append({"id": "tiny", "question": "Why?", "image": "tiny.png", "answer": "x"})
    monkeypatch.setattr("mmprompt.check.media_check.inspect", decode_faults.inspect_or_fail)
    policy = MediaPolicy(roots=[str(tmp_path)], timeout=1.5, max_pixels=1 << 20)
    task = dataset_task(write(tmp_path / "data.jsonl", rows))
    with Store() as store:
        found = findings_of(task, store, workers, policy=policy, codes=("MM902", "MM308"))
    assert [(f.code, f.id, f.line, f.column) for f in found] == [
        *[("MM902", fault, line, "image") for line, fault in enumerate(FAULTS, 2)],
        ("MM308", "tiny", 6, "image"),
    ]


def test_equal_bytes_are_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        picture(tmp_path / f"{name}.png")
    picture(tmp_path / "c.png", seed=5)
    rows = [{"id": n, "question": f"Why {n}?", "image": f"{n}.png", "answer": "x"} for n in "abc"]
    monkeypatch.setattr("mmprompt.check.media_check.inspect", decode_faults.inspect_now)
    with Store() as store:
        findings_of(dataset_task(write(tmp_path / "data.jsonl", rows)), store, codes=("MM201",))
        times = [time for (time,) in store.query("SELECT cells FROM media ORDER BY row")]
    assert times[0] == times[1] != times[2]


def test_without_decoding_nothing_is_looked_into(tmp_path: Path) -> None:
    picture(tmp_path / "a.png")
    whole = (tmp_path / "a.png").read_bytes()
    (tmp_path / "a.png").write_bytes(whole[: len(whole) // 2])
    rows = [{"id": 1, "question": "Why?", "image": "a.png", "answer": "x"}]
    task = dataset_task(write(tmp_path / "data.jsonl", rows))
    with Store() as store, Store() as other:
        assert [f.code for f in findings_of(task, store, decode=False)] == []
        assert [f.code for f in findings_of(task, other)] != []


# ---- media that many rows share

SHOTS = {
    "infer_cfg": {
        "ice_template": {"type": "MMPromptTemplate", "template": {"round": [
            {"role": "HUMAN", "prompt_mm": {"image": {"type": "image_url", "image_url": {"url": "{image}"}}, "text": "{question}"}},
            {"role": "BOT", "prompt": "{answer}"},
        ]}},
        "prompt_template": {"type": "MMPromptTemplate", "ice_token": "</E>", "template": {"begin": ["</E>"], "round": [
            {"role": "HUMAN", "prompt_mm": {"image": {"type": "image_url", "image_url": {"url": "{image}"}}, "text": "{question}"}},
        ]}},
        "retriever": {"type": "FixKRetriever", "fix_id_list": [0]},
        "inferencer": {"type": "GenInferencer"},
    },
}  # fmt: skip


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("fault", ["missing", "tiny"])
def test_a_fault_of_an_example_is_told_once(tmp_path: Path, fault: str, workers: int) -> None:
    if fault == "tiny":
        Image.new("RGB", (3, 3), "red").save(tmp_path / "example.png")
    for number in range(4):
        picture(tmp_path / f"{number}.png", seed=number)
    rows = [{"id": n, "question": f"Why {n}?", "image": f"{n}.png", "answer": "x"} for n in range(4)]
    write(tmp_path / "data.jsonl", rows)
    write(tmp_path / "train.jsonl", [{"id": "e", "question": "Who?", "image": "example.png", "answer": "x"}])
    config = {**SHOTS, "dataset": {"path": str(tmp_path / "data.jsonl"), "train": str(tmp_path / "train.jsonl")}}
    with Store() as store:
        found = findings_of(load_task(config), store, workers, codes=("MM201", "MM308", "MM708"))
    assert [(f.code, f.row) for f in found] == [("MM201" if fault == "missing" else "MM308", 0)]
    assert "example.png" in found[0].message


# ---- datasets that end early, and errors on all rows


def test_a_dataset_that_breaks_off_is_a_finding_after_its_rows(tmp_path: Path) -> None:
    rows = "".join(json.dumps({"id": n, "question": f"Why {n}?", "answer": None}) + "\n" for n in range(12_000))
    packed = gzip.compress(rows.encode())
    (tmp_path / "data.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    with Store() as store:
        found = findings_of(dataset_task(tmp_path / "data.jsonl.gz"), store, codes=("MM000", "MM009"))
        assert 1000 < store.progress.rows < 12_000
    assert [(f.code, f.row) for f in found] == [("MM000", None)]
    assert "cut off" in found[0].message


def test_a_media_slot_that_no_row_fills_is_no_row(tmp_path: Path) -> None:
    rows = [{"id": n, "question": f"Why {n}?", "answer": "x"} for n in range(2)]
    task = dataset_task(write(tmp_path / "data.jsonl", rows), map_columns={"pictures": "image"})
    with Store() as store:
        found = findings_of(task, store, codes=("MM603",))
        assert store.progress.rows == 2
    assert [(f.code, f.row, f.column) for f in found] == [("MM603", None, "pictures")]


def test_rows_after_one_that_cannot_be_read_keep_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text('{"id": 1, "question": "?", "answer": "x"}\n{broken\n{"id": 3}\n{also\n')
    with Store() as store:
        found = findings_of(dataset_task(tmp_path / "data.jsonl"), store, codes=("MM002",))
    assert [(f.row, f.line) for f in found] == [(1, 2), (3, 4)]


# ---- faults of ours


def test_a_rule_that_fails_costs_neither_row_nor_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(row: CheckedRow) -> list[Hit]:
        return [Hit(str(1 // (row.sample.row - 1)), "")]

    monkeypatch.setitem(ROW_RULES, "MM716", fails)
    rows = [{"id": n, "question": f"Why {n}?", "answer": "x"} for n in range(3)]
    with Store() as store:
        found = findings_of(dataset_task(write(tmp_path / "data.jsonl", rows)), store, codes=("MM716",))
    assert [(f.code, f.row) for f in found] == [("MM716", 0), ("MM900", 1), ("MM716", 2)]
    assert "the rule MM716 failed (ZeroDivisionError)" in found[1].message
