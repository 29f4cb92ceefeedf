"""A run in shards that is killed goes on where it was, and refuses to if its input or options have changed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from command_line import run_here

from mmprompt import load_task
from mmprompt.check.store import Store
from mmprompt.errors import TaskError
from mmprompt.render.renderer import Renderer
from mmprompt.scale import merge_rendered, render_shard, render_specs
from mmprompt.scale.local import run_local
from mmprompt.scale.plan import plan_shards
from mmprompt.scale.shard_check import CheckMerge, CheckSpec, check_shard
from mmprompt.scale.work_folder import WorkFolder

ROWS, EACH = 3000, 150


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "rows.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for n in range(ROWS):
            name = 7 if n % 500 == 7 else n  # some ids come again, in other shards
            row = {"id": name, "content": f"<AIS_IMAGE_START>https://x.example/{n}.jpg<AIS_CONTENT_TAG>What is {n}?"}
            file.write("{bad\n" if n % 1000 == 3 else json.dumps(row) + "\n")
    return path


def words(dataset: Path, folder: Path) -> list[str]:
    out, errors = folder / "out.jsonl", folder / "errors.jsonl"
    return ["render", str(dataset), "--media", "url", "-o", str(out), "--errors", str(errors)]


def engine(*options: str) -> list[str]:
    return ["--engine", "local", "--workers", "2", "--rows-per-shard", str(EACH), *options]


def killed_after(command: list[str], folder: Path, shards: int, seconds: float, names: str = "*") -> None:
    """Kill the command some time after so many shards with such names are done."""
    with subprocess.Popen([sys.executable, "-m", "mmprompt", *command], stderr=subprocess.PIPE) as process:
        try:
            end = time.monotonic() + 60
            while (
                len(list(folder.glob(f"{names}.report"))) < shards and process.poll() is None and time.monotonic() < end
            ):
                time.sleep(0.005)
            time.sleep(seconds)
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)  # its processes have the pipe too: where it ends, they are gone


def test_a_run_killed_at_random_moments_goes_on(dataset: Path, tmp_path: Path) -> None:
    plain, cut = tmp_path / "plain", tmp_path / "cut"
    plain.mkdir()
    cut.mkdir()
    expected = run_here(*words(dataset, plain))
    work, chance = cut / "out.jsonl.shards", random.Random(3)
    command = words(dataset, cut) + engine()
    seen: dict[str, int] = {}
    for shards in (1, 4, 9):
        killed_after(command, work, shards, chance.random() / 20)
        if work.exists():
            done = {path.name: path.stat().st_ino for path in work.glob("*.report")}
            assert seen.items() <= done.items()  # no shard was done again
            seen = done
    assert seen
    done = run_here(*command)
    first, _, told = done.stderr.decode().partition("\n")
    assert first == f"mmprompt: going on: {len(seen)} of {ROWS // EACH} shards were done before"
    assert told == expected.stderr.decode().replace(str(plain), str(cut))
    assert done.returncode == expected.returncode == 1
    for name in ("out.jsonl", "errors.jsonl"):
        assert (cut / name).read_bytes() == (plain / name).read_bytes()
    assert sorted(os.listdir(cut)) == ["errors.jsonl", "out.jsonl"]


def changed(path: Path) -> None:
    """Change one byte of a file, and neither its size nor its time."""
    stat, data = path.stat(), path.read_bytes()
    path.write_bytes(data[:-2] + bytes([data[-2] ^ 1]) + data[-1:])
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.parametrize("kind", ["lines", "ids", "events"])
def test_a_shard_whose_bytes_have_changed_is_done_again(dataset: Path, tmp_path: Path, kind: str) -> None:
    plain, cut = tmp_path / "plain", tmp_path / "cut"
    plain.mkdir()
    cut.mkdir()
    expected = run_here(*words(dataset, plain))
    work, command = cut / "out.jsonl.shards", words(dataset, cut) + engine()
    killed_after(command, work, 2, 0, "0000[01]")
    done = len(list(work.glob("*.report")))
    changed(work / f"00000.{kind}")  # its fourth row is no JSON, so it has events too
    told = run_here(*command).stderr.decode().splitlines()
    assert told[:2] == [
        f"mmprompt: going on: {done - 1} of {ROWS // EACH} shards were done before",
        "mmprompt: shards done again, because their files have changed: 1",
    ]
    assert told[2:] == expected.stderr.decode().replace(str(plain), str(cut)).splitlines()
    for name in ("out.jsonl", "errors.jsonl"):
        assert (cut / name).read_bytes() == (plain / name).read_bytes()


def test_a_merge_refuses_a_shard_whose_bytes_have_changed(dataset: Path, tmp_path: Path) -> None:
    specs = render_specs(Renderer(load_task(str(dataset)), media="url"), tmp_path / "work", rows=1500)
    for spec in specs:
        render_shard(spec)
    changed(tmp_path / "work/00001.lines")
    with pytest.raises(TaskError, match=r"shard 1 in .* is not done, or its files have changed since"):
        merge_rendered(specs, tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()
    render_shard(specs[1])
    assert merge_rendered(specs, tmp_path / "out.jsonl").rendered == ROWS - 3


def test_a_merge_of_checked_shards_leaves_their_files_as_they_were(dataset: Path, tmp_path: Path) -> None:
    task, folder = load_task(str(dataset)), WorkFolder(str(tmp_path / "work"))
    shards = plan_shards(task.dataset, 1500)
    folder.begin({}, shards)
    specs = [CheckSpec(task, shard, number, folder.path) for number, shard in enumerate(shards)]
    with closing(specs[0].checker(task)) as checker, Store() as store:
        checker.begin(store)
        merge = CheckMerge(checker, store, folder)
        for spec in specs:
            merge.add(check_shard(spec))
        merge.finish()
    assert [folder.report(spec.number) is not None for spec in specs] == [True, True]


def test_a_changed_run_is_refused(dataset: Path, tmp_path: Path) -> None:
    own = tmp_path / "rows.jsonl"
    own.write_bytes(dataset.read_bytes())
    work = tmp_path / "out.jsonl.shards"
    killed_after(words(own, tmp_path) + engine(), work, 1, 0)
    before = sorted(os.listdir(work))
    for change, named in (
        (["--limit", "900"], "another --limit"),
        (["--target", "anthropic"], "another --target"),
        ([], "rows.jsonl; go on as before, or remove that folder to begin anew"),
    ):
        if not change:
            own.write_bytes(dataset.read_bytes() + b'{"content": "more"}\n')
        refused = run_here(*words(own, tmp_path), *engine(*change))
        assert refused.returncode == 2
        assert named in refused.stderr.decode()
        assert sorted(os.listdir(work)) == before


def test_a_run_goes_on_that_a_version_with_fewer_options_began(tmp_path: Path) -> None:
    folder = WorkFolder(str(tmp_path / "work"))
    folder.begin({"--limit": 3}, [])
    assert folder.resumed({"--limit": 3, "--drop-last-assistant": False, "--param": [], "--split": None}) == []
    with pytest.raises(TaskError, match="was begun with another --drop-last-assistant;"):
        folder.resumed({"--limit": 3, "--drop-last-assistant": True})


def test_an_option_of_0_is_given(tmp_path: Path) -> None:
    folder = WorkFolder(str(tmp_path / "work"))
    folder.begin({"--temperature": 0.0, "--seed": None}, [])
    assert folder.resumed({"--temperature": 0.0, "--seed": None}) == []
    with pytest.raises(TaskError, match="was begun with another --temperature;"):
        folder.resumed({"--temperature": None, "--seed": None})
    with pytest.raises(TaskError, match="was begun with another --seed;"):
        folder.resumed({"--temperature": 0.0, "--seed": 0})


def test_a_folder_of_something_else_is_left_alone(dataset: Path, tmp_path: Path) -> None:
    work = tmp_path / "out.jsonl.shards"
    work.mkdir()
    (work / "mine.txt").write_text("keep", encoding="utf-8")
    refused = run_here(*words(dataset, tmp_path), *engine())
    assert refused.returncode == 2
    assert "holds no run in shards; move it away" in refused.stderr.decode()
    assert (work / "mine.txt").read_text(encoding="utf-8") == "keep"


def test_standard_output_is_refused(dataset: Path) -> None:
    refused = run_here("render", dataset, "--engine", "local")
    assert refused.returncode == 2
    assert refused.stderr.decode() == "mmprompt: MM602 --engine writes to a file; name it with -o FILE\n"


def unsent(row: object) -> object:
    """Stand for work on a shard; it is not reached."""
    return row


def test_a_task_that_cannot_go_to_another_process_is_a_task_error() -> None:
    with pytest.raises(TaskError, match="cannot go to another process"):
        list(run_local(unsent, [lambda: None], 1))  # type: ignore[arg-type, type-var]  # work that is never done
