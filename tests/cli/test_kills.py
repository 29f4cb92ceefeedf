"""Commands killed at random moments: each output is the older or the whole new one, and the next run leaves nothing over."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from command_line import run_here

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")]

KILLS = 20
ROWS = 300
SHAPES = Path(__file__).parents[2] / "fixtures" / "shapes"
_ASSETS = re.compile("page/assets/[0-9a-f]{12}")
_FOLDER = re.compile(rb"(page/assets/)[0-9a-f]{12}")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows with pictures of 24 MB together, which find no room in a page; some rows miss theirs."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "m").mkdir()
    chance = random.Random(0)
    header = b"BM" + (54 + 80_000).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little")
    header += b"".join(n.to_bytes(4, "little") for n in (40, 160, 125)) + b"\1\0\x20\0" + bytes(24)
    with (folder / "rows.jsonl").open("w", encoding="utf-8") as rows:
        for n in range(ROWS):
            (folder / "m" / f"{n}.bmp").write_bytes(header + chance.randbytes(80_000))
            name = "none.bmp" if n % 50 == 7 else f"m/{n}.bmp"
            rows.write(json.dumps({"id": n, "question": f"What is {n}?", "image": name, "answer": str(n)}) + "\n")
    (folder / "task.json").write_text('{"dataset": {"path": "rows.jsonl"}, "model": {"model": "m"}}')
    return folder


class Case(NamedTuple):
    """A command, and the names that it leaves behind in its folder. Where the last is new, everything is.

    Before, it was run with the options ``older``; None: the output may not be there before.
    """

    words: Sequence[str]
    names: Sequence[str]
    older: Sequence[str] | None = ("--limit", "3")


ENGINE = ("--engine", "local", "--workers", "2", "--rows-per-shard", "60")
BATCH = ("--emit", "batch", "--target", "openai", "--media", "keep", "--shard-rows", "60")
SHARDS = [f"o-{n:05d}.jsonl" for n in range(1, 6)]
CASES = {
    "render": Case(("render", "{rows}", "-o", "o.jsonl", "--errors", "e.jsonl"), ["o.jsonl", "e.jsonl"]),
    "batch shards": Case(("render", "{task}", "-o", "o.jsonl", *BATCH), [*SHARDS, "o.manifest.json"]),
    "engine": Case(("render", "{rows}", "-o", "o.jsonl", *ENGINE), ["o.jsonl"]),
    "engine shards": Case(("render", "{rows}", "-o", "o.jsonl", "--shards", *ENGINE), [*SHARDS, "o.manifest.json"]),
    "baseline": Case(("check", "{rows}", "--no-decode", "--baseline", "b.json", "--write-baseline"), ["b.json"]),
    "report": Case(
        ("check", "{rows}", "--no-decode", "--output-format", "json", "--output-file", "r.json"), ["r.json"]
    ),
    "page": Case(("view", "{rows}", "--no-check", "--html", "page.html"), ["page", "page.html"]),
    "table": Case(("convert", "{rows}", "o.csv", "--to", "csv", "--store", "files"), ["o_media", "o.csv"], ()),
    "tar": Case(("convert", "{rows}", "o.tar", "--to", "webdataset"), ["o.tar"], ()),
    "folder": Case(("convert", "{rows}", "o", "--to", "imagefolder"), ["o"], None),
}


def digests(folder: Path) -> dict[str, str]:
    """Return the hash of each file, whatever the folder of a page is called."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            name = os.fsdecode(_FOLDER.sub(rb"\1", os.fsencode(path.relative_to(folder))))
            found[name] = hashlib.sha256(_FOLDER.sub(rb"\1", path.read_bytes())).hexdigest()
    return found


def seconds_of(words: Sequence[object], folder: Path) -> float:
    began = time.monotonic()
    killed(words, folder, 120)
    return time.monotonic() - began


def killed(words: Sequence[object], folder: Path, seconds: float) -> None:
    """Kill the command so many seconds after it began."""
    command = [sys.executable, "-m", "mmprompt", *map(str, words)]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)  # its processes have the pipes too: where they end, all are gone


@pytest.mark.parametrize("name", CASES)
def test_what_is_there_after_a_kill_is_old_or_whole(name: str, data: Path, tmp_path: Path) -> None:
    case, chance = CASES[name], random.Random(name)
    words = [word.format(rows=data / "rows.jsonl", task=data / "task.json") for word in case.words]
    whole, before, cut = tmp_path / "whole", tmp_path / "before", tmp_path / "cut"
    for folder in (whole, before):
        folder.mkdir()
    inputs, seconds = digests(data), seconds_of(words, whole)
    new = digests(whole)
    assert sorted(os.listdir(whole)) == sorted(case.names)
    if case.older is not None:
        assert run_here(*words, *case.older, cwd=before).returncode in {0, 1}
        if not case.older:
            (before / case.names[-1]).write_bytes(b"older")
    old, kept, left = digests(before), 0, 0
    for _ in range(KILLS):
        shutil.copytree(before, cut)
        for _ in range(chance.randint(1, 2)):  # a kill may follow a kill
            killed(words, cut, seconds * chance.uniform(0.3, 1.05))
            found = digests(cut)
            assert digests(data) == inputs
            for output in set(case.names) & found.keys():
                assert found[output] in (old.get(output), new[output]), output
            if (last := case.names[-1]) != "o" and found[last] == new[last]:
                assert found.items() >= new.items()
                assert all(
                    (cut / folder).is_dir() for folder in _ASSETS.findall((cut / last).read_text("utf-8", "replace"))
                )
            elif last == "o":
                assert not (cut / "o").exists() or found.items() >= new.items()
            kept += {name: found[name] for name in case.names if name in found} == {
                name: old[name] for name in case.names if name in old
            }
        left += not set(os.listdir(cut)) <= {*case.names, *os.listdir(before)}
        if last == "o":
            shutil.rmtree(cut / "o", ignore_errors=True)
        assert run_here(*words, cwd=cut).returncode in {0, 1}
        assert digests(cut) == new
        assert sorted(os.listdir(cut)) == sorted(case.names)
        shutil.rmtree(cut)
    print(
        f"{name}: {seconds:.2f} s; {kept} kills left the older output, and {left} of {KILLS} times something lay there"
    )
    assert kept  # else no kill came in time


def test_a_journal_after_a_kill_is_gone_on_with(tmp_path: Path) -> None:
    task, chance = SHAPES / "task.yaml", random.Random(0)
    words = ("run", task, "--model", "builtin:shapes", "--limit", "60", "-o", "j.jsonl", "--report", "r.json")
    whole = tmp_path / "whole"
    whole.mkdir()
    inputs, seconds = digests(SHAPES), seconds_of(words, whole)
    new, report = replies(whole / "j.jsonl"), json.loads((whole / "r.json").read_text("utf-8"))
    torn = stopped = 0
    for number in range(KILLS):
        cut = tmp_path / str(number)
        cut.mkdir()
        for more in ((), ENGINE) if number % 2 else ((),):
            killed([*words, *more], cut, seconds * chance.uniform(0.3, 1.05))
            if (cut / "j.jsonl").exists():
                text = (cut / "j.jsonl").read_bytes()
                torn += text[-1:] not in (b"", b"\n")
                stopped += text.count(b"\n") < len(new)
                assert all(
                    json.loads(line)["prediction"] for line in text.splitlines(keepends=True) if line[-1:] == b"\n"
                )
        assert digests(SHAPES) == inputs
        assert run_here(*words, *(ENGINE if number % 2 else ()), cwd=cut).returncode == 0
        assert replies(cut / "j.jsonl") == new
        again = json.loads((cut / "r.json").read_text("utf-8"))
        assert (again["rows"], again["score"]) == (report["rows"], report["score"])
        assert sorted(os.listdir(cut)) == ["j.jsonl", "j.jsonl.manifest.json", "r.json"]
    print(f"run: {seconds:.2f} s; {stopped} kills came while rows were asked, {torn} left a torn line")
    assert stopped


def replies(journal: Path) -> list[tuple[int, str]]:
    lines = map(json.loads, journal.read_text("utf-8").splitlines())
    return sorted((line["row"], line["prediction"]) for line in lines)
