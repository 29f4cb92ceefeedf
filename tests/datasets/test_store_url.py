"""Datasets and outputs in an object store: what the command line names is opened by fsspec, what data name is not."""

from __future__ import annotations

import json

import pytest

from mmprompt import TaskError, load_task
from mmprompt.datasets.store_url import StoreURL
from mmprompt.render.renderer import Renderer
from mmprompt.scale import render_shard, render_specs

fsspec = pytest.importorskip("fsspec")

ROWS = "".join(json.dumps({"id": n, "question": f"What is {n}?", "answer": "x"}) + "\n" for n in range(50))


@pytest.fixture
def memory():
    store = fsspec.filesystem("memory")
    store.pipe("/bucket/data.jsonl", ROWS.encode())
    yield store
    store.rm("/bucket", recursive=True)


def test_a_dataset_and_an_output_in_memory_give_the_bytes_of_files(command, tmp_path, memory):
    (tmp_path / "data.jsonl").write_text(ROWS)
    command("render", tmp_path / "data.jsonl", "-o", tmp_path / "out.jsonl")
    done = command("render", "memory://bucket/data.jsonl", "-o", "memory://bucket/out.jsonl")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"50 of 50 rows written to memory://bucket/out.jsonl" in done.stderr
    assert memory.cat("/bucket/out.jsonl") == (tmp_path / "out.jsonl").read_bytes()


@pytest.mark.parametrize("name", ["data.csv", "data.jsonl.gz"])
def test_other_formats_are_read(command, tmp_path, memory, name):
    with fsspec.open(f"memory://bucket/{name}", "wt", compression="infer", encoding="utf-8") as file:
        file.write("id,question\n1,a\n2,b\n" if name.endswith("csv") else ROWS)
    done = command("render", f"memory://bucket/{name}")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == (2 if name.endswith("csv") else 50)


def test_an_engine_reads_an_object_in_shards_and_writes_one(command, tmp_path):
    (tmp_path / "data.jsonl").write_text(ROWS)
    plain = command("render", tmp_path / "data.jsonl")
    url = (tmp_path / "data.jsonl").as_uri()
    done = command(
        "render",
        url,
        "-o",
        (tmp_path / "out.jsonl").as_uri(),
        "--engine",
        "local",
        "--rows-per-shard",
        20,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.jsonl").read_bytes() == plain.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.jsonl", "out.jsonl"]


@pytest.mark.parametrize("change", ["size", "time"])
def test_shards_of_an_object_that_has_changed_are_not_gone_on_with(tmp_path, memory, change):
    url = StoreURL("memory://bucket/data.jsonl")
    specs = render_specs(Renderer(load_task({}, url)), tmp_path / "work", rows=20)
    render_shard(specs[0])
    assert len(render_specs(Renderer(load_task({}, url)), tmp_path / "work", rows=20)) == 3
    memory.pipe("/bucket/data.jsonl", ROWS.replace("What", "Which" if change == "size" else "Whom").encode())
    with pytest.raises(TaskError, match=r"was begun with another file memory://bucket/data\.jsonl"):
        render_specs(Renderer(load_task({}, url)), tmp_path / "work", rows=20)


def test_a_run_that_fails_leaves_the_object_as_it_was(command, memory):
    memory.pipe("/bucket/torn.jsonl", b"{torn\n")
    memory.pipe("/bucket/out.jsonl", b"before")
    assert command("render", "memory://bucket/torn.jsonl", "-o", "memory://bucket/out.jsonl").returncode == 1
    assert memory.cat("/bucket/out.jsonl") == b"before"


@pytest.mark.parametrize("name", ["memory://bucket/none.jsonl", "nostore://bucket/data.jsonl"])
def test_what_cannot_be_opened_is_an_error_that_names_it(command, memory, name):
    done = command("render", name)
    assert done.returncode == 2
    assert name.encode() in done.stderr


def test_what_rows_and_task_files_name_stays_unopened(command, tmp_path, memory):
    memory.pipe("/bucket/picture.png", b"\x89PNG\r\n\x1a\n")
    row = {"id": 1, "image": "memory://bucket/picture.png", "question": "?", "answer": ""}
    (tmp_path / "data.jsonl").write_text(json.dumps(row) + "\n")
    assert command("render", tmp_path / "data.jsonl").returncode == 1
    (tmp_path / "task.yaml").write_text("dataset: {path: 'memory://bucket/data.jsonl'}\n")
    assert command("render", tmp_path / "task.yaml").returncode == 2
    named = command("render", tmp_path / "task.yaml", "--dataset", "memory://bucket/data.jsonl")
    assert len(named.stdout.splitlines()) == 50
