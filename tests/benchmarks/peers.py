"""Rows to requests beside other programs: ``python tests/benchmarks/run.py --peers [PYTHON …]``.

Each PYTHON is an interpreter in whose environment evalscope or inspect_ai is installed; by default the one that runs.
The rows are those of the grid. A peer gets its messages made of the rows that mmprompt reads from a file, and its dicts
are written by ``orjson``.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

import orjson
from grid import LOOP_ROWS, Effort, Grid
from grid_bound import Cell, lines, warm_heap
from rendering import bodies, check_same, drop, render_to_nowhere
from timing import Row, against, interleaved, print_table

import mmprompt
from mmprompt import render_file

ROWS = {"jpeg": 300, "url": 2000}
REPETITIONS = 5
CELLS = [Cell(shape, medium) for shape in ("columns", "images", "chat") for medium in ROWS]

Dialogue = list[tuple[str, "str | list[tuple[str, str]]"]]
"""Roles, each with a text, or with parts: ``image`` and a path or an address, ``text`` and a text."""


def main(pythons: list[str]) -> int:
    """Measure in each environment, and print one table."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(mmprompt.__file__)))
    rows = []
    for python in pythons or [sys.executable]:
        ran = subprocess.run(
            [python, os.path.abspath(__file__)],
            env={**os.environ, "PYTHONPATH": root},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        rows += [Row(*json.loads(line)) for line in ran.stdout.splitlines()]
    print_table(rows)
    return 1 if any(row.reached is False for row in rows) else 0


def measured(folder: str) -> Iterator[Row]:
    """Measure the cells with the peers that are installed in this environment."""
    peers = {name: made for name, made in _PEERS.items() if importlib.util.find_spec(name) is not None}
    for name in _PEERS.keys() - peers.keys():
        print(f"{name} is left out: it is not installed here", file=sys.stderr)
    grid = Grid(folder, Effort())
    for cell in CELLS:
        own = {name: made for name, made in peers.items() if cell.medium != "url" or name not in _NO_ADDRESSES}
        yield from _job(cell, grid, own)


def _job(cell: Cell, grid: Grid, peers: dict[str, Callable[[list[Dialogue]], Iterator[object]]]) -> Iterator[Row]:
    data, count = grid.data(cell, LOOP_ROWS), ROWS[cell.medium]
    task = data.task()
    with open(data.path, "rb") as file:
        dialogues = [dialogue(cell, orjson.loads(line), grid.folder) for line in islice(file, count)]

    def bound() -> Iterator[bytes]:
        return islice(lines(cell, data.path, grid.how), count)

    check_same(task, bound())
    warm_heap()
    out = data.path + ".out"
    contenders: dict[str, Callable[[], object]] = {
        "bound": lambda: drop(bound()),
        "bound, to a file": lambda: _write(bound(), out),
        "render": lambda: render_to_nowhere(task, count),
        "render, to a file": lambda: render_file(task, out, limit=count),
        "body()": lambda: drop(islice(bodies(task), count)),
    }
    for name, requests in peers.items():
        _check_peer(next(requests(dialogues)), next(bodies(task)), name)
        contenders[name] = partial(_drop_dicts, requests, dialogues)
    timed = interleaved(contenders, REPETITIONS)
    what = f"{cell.shape}, {cell.medium}"
    for name in contenders:
        if not name.startswith("bound"):
            against_what = "bound, to a file" if name == "render, to a file" else "bound"
            yield against(f"{what}: {name}, against the bound", timed, name, against_what, count, None)
    for name in peers:
        yield against(f"{what}: render, against {name}", timed, "render", name, count, 1.0)
        yield against(f"{what}: body(), against {name}", timed, "body()", name, count, 1.0)


def dialogue(cell: Cell, row: dict[str, object], folder: str) -> Dialogue:
    """Return a row as it is handed to a peer."""

    def source(name: str) -> str:
        return name if cell.medium == "url" else os.path.join(folder, name)

    if cell.shape != "chat":
        images = row["images"] if cell.shape == "images" else [row["image"]]
        return [("user", [*[("image", source(name)) for name in images], ("text", row["question"])])]
    said: Dialogue = []
    for message in row["messages"]:
        content = message["content"]
        if not isinstance(content, str):
            content = [
                ("text", part["text"]) if part["type"] == "text" else ("image", source(part["image_url"]["url"]))
                for part in content
            ]
        said.append((message["role"], content))
    return said


def _drop_dicts(requests: Callable[[list[Dialogue]], Iterator[object]], dialogues: list[Dialogue]) -> None:
    drop(map(orjson.dumps, requests(dialogues)))


def _write(made: Iterator[bytes], path: str) -> None:
    with open(path, "wb") as sink:
        sink.writelines(made)


def _evalscope(dialogues: list[Dialogue]) -> Iterator[object]:
    from evalscope.api.messages import ChatMessageAssistant, ChatMessageUser, ContentImage, ContentText
    from evalscope.models.utils.openai import openai_chat_messages

    def content(parts: str | list[tuple[str, str]]) -> object:
        if isinstance(parts, str):
            return parts
        return [ContentImage(image=value) if kind == "image" else ContentText(text=value) for kind, value in parts]

    classes = {"user": ChatMessageUser, "assistant": ChatMessageAssistant}
    for said in dialogues:
        yield {"messages": openai_chat_messages([classes[role](content=content(parts)) for role, parts in said])}


def _inspect(dialogues: list[Dialogue]) -> Iterator[object]:
    from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ContentImage, ContentText
    from inspect_ai.model._openai import messages_to_openai
    from inspect_ai.util import materialize_media

    async def content(parts: str | list[tuple[str, str]]) -> object:
        if isinstance(parts, str):
            return parts
        return [
            ContentImage(image=await materialize_media(value)) if kind == "image" else ContentText(text=value)
            for kind, value in parts
        ]

    classes = {"user": ChatMessageUser, "assistant": ChatMessageAssistant}

    async def request(said: Dialogue) -> object:
        return await messages_to_openai([classes[role](content=await content(parts)) for role, parts in said])

    with asyncio.Runner() as runner:
        for said in dialogues:
            yield {"messages": runner.run(request(said))}


def _check_peer(theirs: object, ours: bytes, name: str) -> None:
    """Refuse a peer that does not send the same texts and pictures."""
    sent = json.dumps(theirs)
    for message in json.loads(ours)["messages"]:
        content = message["content"]
        for part in [{"text": content}] if isinstance(content, str) else content:
            value = part["image_url"]["url"] if "image_url" in part else part["text"]
            if json.dumps(value)[1:-1] not in sent:
                raise SystemExit(f"{name} does not send {value[:100]!r}: {sent[:300]}")


_PEERS = {"evalscope": _evalscope, "inspect_ai": _inspect}
_NO_ADDRESSES = {"inspect_ai"}
"""Peers that send a picture by its bytes only."""

if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="mmprompt-peers-") as made_folder:
        for measured_row in measured(made_folder):
            print(json.dumps(measured_row), flush=True)
