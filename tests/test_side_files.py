"""Files that lie beside a dataset and hold what nobody expects: one line says what is wrong, and no traceback."""

from __future__ import annotations

import importlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from time_taken import processor_seconds

from mmprompt import DatasetError, TaskError, dataset_task
from mmprompt.check.checker import Checker
from mmprompt.check.store import Store
from mmprompt.cli import main
from mmprompt.datasets.crash_record import CrashRecord
from mmprompt.datasets.repeated_ids import keys_in
from mmprompt.render.renderer import Renderer
from mmprompt.scale import render_shard, render_specs
from mmprompt.scale.journals import ShardJournals
from mmprompt.scale.work_folder import WorkFolder
from mmprompt.targets.json_files import parsed_json

FUZZ = Path(__file__).parent / "fuzz"
PLAN = "out.jsonl.shards/plan.json"
RENDER = ["render", "rows.jsonl", "--engine", "local", "-o", "out.jsonl"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rows.jsonl").write_text('{"id": 1, "question": "Which colour?", "answer": "red"}\n')
    (tmp_path / "out.jsonl.shards").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def fuzzer() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FUZZ))
        yield importlib.import_module("side_files")


KINDS = (
    "manifest", "plan", "shard", "state", "journal", "baseline", "yaml", "toml", "json", "upstream", "project",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutated_file_is_read_or_refused_in_one_line(kind: str, fuzzer: Any) -> None:
    _, faults = fuzzer.fuzz(kind, 40, seed=11)
    assert not faults, faults[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_mutated_files_are_read_or_refused(kind: str, fuzzer: Any) -> None:
    assert set(KINDS) == set(fuzzer.KINDS)
    _, faults = fuzzer.fuzz(kind, -(-fuzzer.COUNT // len(KINDS)), seed=12)
    assert not faults, faults[0]


@pytest.mark.parametrize(
    "plan",
    [
        "[]",
        '{"version":1,"mmprompt":"0.1.0","about":5,"shards":7}',
        '{"version":1,"mmprompt":"x","about":{},"shards":[5]}',
        "[" * 100_000,
    ],
)
def test_a_plan_that_is_none_is_refused(plan: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / PLAN).write_text(plan)
    assert main(RENDER) == 2
    assert "plan.json" in capsys.readouterr().err


def test_a_repeated_key_among_many_is_found_in_one_pass(folder: Path) -> None:
    keys = ",".join(f'"{number}":0' for number in range(80_000))

    def read() -> None:
        with pytest.raises(TaskError, match="the key '79999' is given twice"):
            parsed_json(f'{{{keys},"79999":0}}')

    assert processor_seconds(read, enough=1) < 2


ODD_YAML = (
    "model: {model: !!timestamp x}", "model: !!timestamp x", "!!timestamp x: 5", "model: !!bool x", 'model: !!int ""',
    'model: !!int "-"', 'model: !!float ""', 'model: "\\UFFFFFFFF"',
)  # fmt: skip


@pytest.mark.parametrize("text", ODD_YAML)
def test_a_value_that_is_not_of_its_tag_is_malformed_yaml(
    text: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "task.yaml").write_text(f"dataset: rows.jsonl\n{text}\n")
    assert main(["render", "task.yaml"]) == 2
    error = capsys.readouterr().err
    assert "malformed YAML" in error
    assert "object has no attribute" not in error


@pytest.mark.parametrize(
    "text", ['dataset: {path: rows.jsonl}\nmedia: {roots: ["\\ud800"]}', 'include: "\\ud800"\ndoc_to_text: x']
)
def test_half_a_surrogate_pair_in_a_path_is_refused(
    text: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "task.yaml").write_text(text)
    assert main(["render", "task.yaml"]) == 2
    assert "\\ud800" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["a\\ud800b.yaml", "a\\0b.yaml"])
def test_an_include_that_no_file_can_be_named_like_is_refused(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "task.yaml").write_text(f'task: t\ninclude: "{name}"\noutput_type: generate_until\n')
    assert main(["render", "task.yaml"]) == 2
    assert "include" in capsys.readouterr().err


@pytest.mark.parametrize("change", [{"part": 7}, {"start": 9, "end": 3}])
def test_a_plan_of_parts_that_the_dataset_lacks_is_refused(
    change: dict[str, int], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = dataset_task("rows.jsonl")
    [spec] = render_specs(Renderer(task), "work")
    plan = json.loads((folder / "work/plan.json").read_text())
    plan["shards"][0].update(change)
    (folder / "work/plan.json").write_text(json.dumps(plan))
    [spec] = render_specs(Renderer(task), "work")
    with pytest.raises(DatasetError, match="remove the work folder to begin anew"):
        render_shard(spec)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE progress SET codes = '[[]]'",
        "UPDATE samples SET id = '{'",
        "UPDATE samples SET answer = 5, shape = '{\"a\": 5}'",
        "ALTER TABLE samples ADD x",
        "CREATE TRIGGER t AFTER INSERT ON findings BEGIN DELETE FROM samples; END",
    ],
)
def test_a_state_of_another_form_is_refused(statement: str, folder: Path) -> None:
    task = dataset_task("rows.jsonl")
    with Store("state", "s") as store, closing(Checker(task)) as checker:
        assert len(list(checker.check_rows(store))) == 1
        store.save(store.progress, now=True)
    with Store("state", "s", resume=True) as store:
        assert store.progress.rows == 1
    with closing(sqlite3.connect("state")) as database, database:
        database.execute(statement)
    with pytest.raises(TaskError, match="'state' is damaged: it is not the state of a check; remove it"):
        Store("state", "s", resume=True)


def test_a_crash_record_of_odd_numbers_is_begun_anew(folder: Path) -> None:
    (folder / "odd.row").write_bytes(b"\xff\x7f" * 2048)
    with CrashRecord("odd.row", 5) as record:
        assert not record.poison


@pytest.mark.parametrize("data", [b"\1", b"\xff" * 24, b"\2" + bytes(7) + bytes(16), b"\1" + bytes(7) + b"\xff" * 12])
def test_a_file_that_holds_no_ids_is_refused(data: bytes, folder: Path) -> None:
    (folder / "odd.ids").write_bytes(data)
    with (folder / "odd.ids").open("rb") as file, pytest.raises(TaskError, match="does not hold ids"):
        list(keys_in(file))


@pytest.mark.parametrize("mark", ["x", "-5", "9" * 5000, "[1]"])
def test_a_mark_of_a_seed_that_is_no_number_is_refused(mark: str, folder: Path) -> None:
    work = WorkFolder(str(folder))
    (folder / "seeded").write_text(mark)
    (folder / "run.jsonl").write_bytes(b"")
    with pytest.raises(TaskError, match="remove the folder to begin anew"):
        ShardJournals("run.jsonl", work, []).seed(None)  # type: ignore[arg-type]  # it is not come to
