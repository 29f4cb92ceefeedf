"""Fuzzing: ``python tests/fuzz/side_files.py [COUNT [SEED [KIND …]]]`` feeds changed files of our own to what reads them.

COUNT files in all (20,000 by default), an equal share of each kind: manifests, plans, what done shards leave, states of
a check, journals, baselines, and settings as YAML, TOML and JSON. SEED is the day's date by default. Only our own
errors may come out. Exits with 1 otherwise.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import yaml

from mmprompt import dataset_task
from mmprompt.check.checker import Checker
from mmprompt.check.statistics import statistics_of
from mmprompt.check.store import Store
from mmprompt.cli import main as command
from mmprompt.errors import MMPromptError
from mmprompt.render.renderer import Renderer
from mmprompt.scale import merge_rendered, render_shard, render_specs

COUNT = 20_000
ROWS = [
    {"id": 1, "question": "Which colour?", "answer": "red", "choices": ["red", "blue"]},
    {"id": "b", "question": "Which <ais_image_start> colour?", "answer": "red", "image": "none.png"},
    {"id": 1, "question": "", "answer": ["x"], "image": "none.png"},
]
REPLY = {
    "row": 0,
    "id": 1,
    "turn": None,
    "label": None,
    "repeat": 0,
    "request": "ab",
    "prediction": "red",
    "answer": "red",
    "choices": ["red", "blue"],
    "groups": {"category": "x"},
    "usage": {"prompt_tokens": 3},
    "seconds": 0.5,
    "attempts": 1,
    "finish_reason": "stop",
}
MANIFEST = {
    "version": 1,
    "task": None,
    "dataset": {"path": "rows.jsonl", "read": {"map_columns": {"question": "question"}}},
    "model": "m",
    "target": "vllm",
    "scorer": "exact",
    "index_base": None,
    "limit": 5,
    "headers": {"X-A": "B"},
    "options": {"temperature": 0},
    "inferencer": "GenInferencer",
    "repeats": 1,
    "base_url": "http://x/v1",
}
BASELINE = {"findings": [{"code": "MM201", "file": "rows.jsonl", "id": 1, "row": 0, "column": None, "message": "x"}]}
TASK = {
    "dataset": {"path": "rows.jsonl", "map": {"question": "question"}, "limit": 2},
    "reader_cfg": {"input_columns": ["question"], "output_column": "answer", "test_range": "[0:1]"},
    "infer_cfg": {
        "prompt_template": {
            "type": "PromptTemplate",
            "template": {"round": [{"role": "HUMAN", "prompt": "{question}"}]},
        },
        "retriever": {"type": "ZeroRetriever"},
        "inferencer": {"type": "GenInferencer", "max_out_len": 5},
    },
    "model": {"model": "m", "max_tokens": 5, "temperature": 0.5},
    "media": {"frames": 2, "max_side": 100, "roots": ["."]},
}
UPSTREAM = {
    "task": "t",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": "rows.jsonl"},
    "output_type": "generate_until",
    "test_split": "train",
    "doc_to_text": "{{question}}",
    "doc_to_target": "answer",
    "num_fewshot": 0,
    "tag": ["a"],
    "generation_kwargs": {"until": ["x"], "max_gen_toks": 5},
    "metric_list": [{"metric": "exact_match"}],
    "fewshot_config": {"sampler": "first_n"},
    "metadata": {"version": 1},
    "include": "other.yaml",
}
PROJECT = {
    "tool": {
        "mmprompt": {
            "select": ["MM2"],
            "extend-select": ["MM7"],
            "target": "vllm",
            "baseline": "baseline.json",
            "workers": 1,
            "ignore": {"rows.jsonl": ["MM201"], "rows.jsonl#1": ["MM7"]},
        }
    }
}
ODD: list[Any] = [
    *(7, -1, 0, 1.5, True, None, "", "a\0b", "a\ud800b", "x" * 5000, [], [7], {}, {"a": 1}, [[[[]]]], 10**400, 1 << 63),
    *(
        "helpers.py",
        "../../x",
        float("nan"),
        float("inf"),
        1e308,
        [None],
        ["a", 5],
        {"": None},
        "{",
        "{{",
        "{% x %}",
        "[0:",
    ),
]

Try = Callable[[random.Random], None]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container in a value with each of its keys."""
    for key, item in [
        *(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    ]:
        yield value, key
        yield from places(item)


def changed(sound: Any, draw: random.Random) -> Any:
    """Return a value with one to three places changed, removed, renamed or nested."""
    value = copy.deepcopy(sound)
    for _ in range(draw.choice((1, 1, 2, 3))):
        found = [*places(value)]
        if not found:
            return value
        holder, key = draw.choice(found)
        how = draw.random()
        if how < 0.15:
            del holder[key]
        elif how < 0.25 and isinstance(holder, dict):
            holder[draw.choice(["x", "", "a\ud800", "a\0", "type", str(key).upper()])] = holder[key]
        elif how < 0.4:
            holder[key] = draw.choice(([holder[key]], {"a": holder[key]}, [holder[key]] * 3))
        elif how < 0.5:
            holder[key] = copy.deepcopy(draw.choice([h[k] for h, k in found]))
        else:
            holder[key] = copy.deepcopy(draw.choice(ODD))
    return value


def damaged(data: bytes, draw: random.Random) -> bytes:
    """Return a file whose bytes are changed now and then: cut, one of them overwritten, or all of them others."""
    how = draw.random()
    if how < 0.85 or not data:
        return data
    at = draw.randrange(len(data))
    if how < 0.9:
        return data[:at]
    if how < 0.97:
        return (
            data[:at]
            + draw.choice([b"\0", b"\xff", b"{", b"\n", b'"', b"&", b"*", b"!!timestamp ", b"<<: "])
            + data[at + 1 :]
        )
    return draw.choice(
        [
            b"[" * 100_000,
            b"\xef\xbb\xbf" + data,
            b"7",
            b"null",
            b'{"version":1,"version":2}',
            b"",
            b"\n\n",
            b"- " * 5000,
        ]
    )


def as_json(value: Any) -> bytes:
    """Return a value as JSON; lone surrogates and NaN stay."""
    return json.dumps(value).encode()


def as_yaml(value: Any) -> bytes:
    """Return a value as YAML."""
    return yaml.safe_dump(value, allow_unicode=False).encode("utf-8", "surrogatepass")


def as_toml(value: Any, name: str = "") -> bytes:
    """Return a value as TOML, what it cannot hold as text."""
    plain, tables = [], []
    for key, item in value.items() if isinstance(value, dict) else [("x", value)]:
        if isinstance(item, dict) and item:
            inner = f"{name}.{json.dumps(key)}" if name else json.dumps(key)
            tables.append(f"[{inner}]\n".encode() + as_toml(item, inner))
        else:
            text = json.dumps(item).replace("NaN", "nan").replace("Infinity", "inf").replace("null", '"null"')
            plain.append(f"{json.dumps(key)} = {text.replace(': ', ' = ')}\n".encode())
    return b"".join([*plain, *tables])


def by_command(file: str, sound: Any, writer: Callable[[Any], bytes], *commands: list[str]) -> Callable[[Path], Try]:
    """Return what tries a changed file on commands in a folder."""

    def made(folder: Path) -> Try:
        def try_one(draw: random.Random) -> None:
            (folder / file).write_bytes(damaged(writer(changed(sound, draw)), draw))
            for words in commands:
                output = io.TextIOWrapper(io.BytesIO(), "utf-8")
                with redirect_stdout(output), redirect_stderr(io.StringIO()) as errors:
                    code = command(words)
                assert code in (0, 1, 2), (code, words, errors.getvalue())
                assert "Traceback" not in errors.getvalue(), errors.getvalue()
                assert "internal error" not in errors.getvalue(), errors.getvalue()

        return try_one

    return made


def journal_bytes(lines: Any) -> bytes:
    """Return the lines of a journal."""
    return b"".join(as_json(line) + b"\n" for line in lines) if isinstance(lines, list) else as_json(lines)


def plans(folder: Path) -> Try:
    """Try plans: the shards that they name are rendered."""
    renderer = Renderer(dataset_task("rows.jsonl"), media="keep")
    render_specs(renderer, "work", 1)
    sound = json.loads((folder / "work/plan.json").read_bytes())

    def try_one(draw: random.Random) -> None:
        (folder / "work/plan.json").write_bytes(damaged(as_json(changed(sound, draw)), draw))
        for spec in render_specs(renderer, "work", 1)[:3]:
            render_shard(spec)

    return try_one


def shards(folder: Path) -> Try:
    """Try what done shards leave; reports name the bytes that are there, so that these are read."""
    renderer = Renderer(dataset_task("rows.jsonl"), media="keep")
    specs = render_specs(renderer, "work", 3)
    report = render_shard(specs[0])
    events = [json.loads(line) for line in (folder / "work/00000.events").read_bytes().splitlines()]
    where = ["rows.jsonl", 1, None, None, "a", None, None, None, None, None]
    events.append(["MM201", "what", "hint", where[: len(events[0][0]) - 4], ""])
    ids = (folder / "work/00000.ids").read_bytes()

    def try_one(draw: random.Random) -> None:
        kind = draw.choice(("report", "events", "ids"))
        kept = changed(events, draw) if kind == "events" else events
        files = {
            "events": damaged(journal_bytes(kept), draw) if kind == "events" else journal_bytes(kept),
            "ids": damaged(ids, random.Random(draw.random())) if kind == "ids" else ids,
            "lines": b"{}\n",
        }
        named = {name: [len(data), hashlib.sha256(data).hexdigest()] for name, data in files.items()}
        whole = json.loads(as_json({**report, "files": named}))
        files["report"] = damaged(as_json(changed(whole, draw)), draw) if kind == "report" else as_json(whole)
        for name, data in files.items():
            (folder / f"work/00000.{name}").write_bytes(data)
        merge_rendered(specs, "merged.jsonl")

    return try_one


def states(folder: Path) -> Try:
    """Try states of a check: the check goes on with them."""
    task = dataset_task("rows.jsonl")
    with Store("sound", "s") as store, closing(Checker(task)) as checker:
        for _ in checker.check_rows(store):
            pass
        store.save(store.progress, now=True)
    with closing(sqlite3.connect("sound")) as database:
        columns = {
            table: [name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")]
            for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        }
        rows = {table: database.execute(f"SELECT * FROM {table}").fetchone() for table in columns}

    def odd(value: Any, draw: random.Random) -> Any:
        if isinstance(value, str) and value[:1] in ("[", "{") and draw.random() < 0.8:
            return json.dumps(changed(json.loads(value), draw))
        return draw.choice(
            [
                *[v for v in ODD if type(v) in (str, float, type(None))],
                7,
                -1,
                1 << 62,
                b"\0x",
                b"",
                "[]",
                "{}",
                '{"a":5}',
                "[" * 900,
            ]
        )

    def try_one(draw: random.Random) -> None:
        shutil.copyfile("sound", "state")
        if draw.random() < 0.15:
            data = bytearray((folder / "sound").read_bytes())
            for _ in range(draw.choice((1, 5, 50))):
                data[draw.randrange(len(data))] = draw.randrange(256)
            (folder / "state").write_bytes(data)
        else:
            with closing(sqlite3.connect("state")) as database, database:
                table = draw.choice([name for name, row in rows.items() if row])
                at = draw.randrange(len(columns[table]))
                value = odd(rows[table][at], draw)
                value = value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
                try:
                    if draw.random() < 0.05:
                        database.execute(
                            draw.choice(
                                (
                                    f"DROP TABLE {table}",
                                    f"ALTER TABLE {table} RENAME TO x",
                                    f"ALTER TABLE {table} ADD y",
                                )
                            )
                        )
                    else:
                        database.execute(f"UPDATE {table} SET {columns[table][at]} = ?", (value,))
                except sqlite3.IntegrityError:
                    return
        with Store("state", "s", resume=True) as store, closing(Checker(task)) as checker:
            for _ in checker.check(store):
                pass
            for finding in store.findings():
                str(finding)
            statistics_of(store)

    return try_one


KINDS: dict[str, Callable[[Path], Try]] = {
    "manifest": by_command(
        "run.jsonl.manifest.json", MANIFEST, as_json,
        ["view", "run.jsonl", "-n"], ["score", "run.jsonl"], ["compare", "run.jsonl", "run.jsonl"],
    ),
    "plan": plans,
    "shard": shards,
    "state": states,
    "journal": by_command(
        "run.jsonl", [REPLY, {**REPLY, "row": 1, "id": "b", "prediction": None, "error": "x"}], journal_bytes,
        ["view", "run.jsonl", "-n"], ["score", "run.jsonl"], ["compare", "run.jsonl", "run.jsonl"],
    ),
    "baseline": by_command("baseline.json", BASELINE, as_json, ["check", "rows.jsonl", "--baseline", "baseline.json"]),
    "yaml": by_command("task.yaml", TASK, as_yaml, ["render", "task.yaml"]),
    "toml": by_command("task.toml", TASK, as_toml, ["render", "task.toml"]),
    "json": by_command("task.json", TASK, as_json, ["render", "task.json"]),
    "upstream": by_command("up.yaml", UPSTREAM, as_yaml, ["render", "up.yaml"], ["render", "up.yaml", "--dataset", "rows.jsonl"]),
    "project": by_command("pyproject.toml", PROJECT, as_toml, ["check", "rows.jsonl"]),
}  # fmt: skip


def fuzz(kind: str, count: int, seed: int) -> tuple[int, list[str]]:
    """Try files of a kind in a folder of its own; return how many our errors refused, and the faults."""
    draw, refused, faults = random.Random(f"{seed}/{kind}"), 0, []
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
        (folder / "run.jsonl").write_bytes(journal_bytes([REPLY]))
        (folder / "run.jsonl.manifest.json").write_bytes(as_json(MANIFEST))
        (folder / "other.yaml").write_bytes(as_yaml({"num_fewshot": 0}))
        os.chdir(folder)
        try:
            try_one = KINDS[kind](folder)
            for number in range(count):
                try:
                    try_one(draw)
                except MMPromptError:
                    refused += 1
                except (Exception, SystemExit):
                    faults.append(f"{kind} {number}:\n{traceback.format_exc(limit=-6)}")
        finally:
            os.chdir(here)
    return refused, faults


def main(count: int = COUNT, seed: int | None = None, *kinds: str) -> int:
    """Try files of each kind, and print what became of them."""
    seed = int(time.strftime("%Y%m%d")) if seed is None else seed
    print(f"seed {seed}", flush=True)
    failed, share = 0, -(-count // len(kinds or KINDS))
    for kind in kinds or KINDS:
        began = time.monotonic()
        _, faults = fuzz(kind, share, seed)
        failed += len(faults)
        for fault in faults[:5]:
            print(fault, flush=True)
        print(f"{kind:9} {share} files, {len(faults)} faults, {time.monotonic() - began:.0f} s", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3]), *sys.argv[3:]))
