"""Rows to requests beside other programs: ``python tests/benchmarks/run.py --peers [PYTHON …]``.

Each PYTHON is an interpreter in whose environment evalscope or inspect_ai is installed; by default the one that runs.
A peer gets its messages made of the rows that mmprompt reads from a file, and its dicts are written by ``orjson``.
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

import inputs
import orjson
from rendering import bodies, check_same, drop, image_lines, render_to_nowhere, url_lines, warm_heap
from timing import Row, against, interleaved, print_table

import mmprompt
from mmprompt import dataset_task
from mmprompt.render.renderer import Renderer
from mmprompt.render.run import render
from mmprompt.targets.chunk_writer import ChunkWriter

IMAGES, URLS, REPETITIONS = 1000, 10_000, 5

Rows = list[inputs.Sample]


def main(pythons: list[str]) -> int:
    """Write the rows once, measure in each environment, and print one table."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(mmprompt.__file__)))
    rows = []
    with tempfile.TemporaryDirectory(prefix="mmprompt-peers-") as folder:
        inputs.write_jpegs(folder, IMAGES)
        for python in pythons or [sys.executable]:
            ran = subprocess.run(
                [python, os.path.abspath(__file__), folder],
                env={**os.environ, "PYTHONPATH": root},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            rows += [Row(*json.loads(line)) for line in ran.stdout.splitlines()]
    print_table(rows)
    return 1 if any(row.reached is False for row in rows) else 0


def measured(folder: str) -> Iterator[Row]:
    """Measure rows with a JPEG and rows with an address in this environment."""
    pictures = inputs.samples([f"media/{number:05}.jpg" for number in range(IMAGES)], IMAGES)
    path = inputs.write_rows(os.path.join(folder, "images.jsonl"), pictures)
    yield from _job("JPEG rows", folder, path, pictures, partial(image_lines, folder, pictures))
    addresses = inputs.samples(inputs.urls(URLS), URLS)
    path = inputs.write_rows(os.path.join(folder, "urls.jsonl"), addresses)
    yield from _job("URL rows", "", path, addresses, partial(url_lines, path))


def _job(what: str, folder: str, path: str, rows: Rows, bound: Callable[[], Iterator[bytes]]) -> Iterator[Row]:
    task = dataset_task(path)
    check_same(task, bound())
    warm_heap()
    out = path + ".out"
    contenders: dict[str, Callable[[], object]] = {
        "bound": lambda: drop(bound()),
        "bound, to a file": lambda: _write(bound(), out),
        "render": lambda: render_to_nowhere(task),
        "render, to a file": lambda: _render(task, out),
        "body()": lambda: drop(bodies(task)),
    }
    installed = {name: made for name, made in _PEERS.items() if importlib.util.find_spec(name) is not None}
    peers = {name: made for name, made in installed.items() if folder or name not in _NO_ADDRESSES}
    for name, requests in peers.items():
        _check_peer(next(requests(folder, rows)), next(bodies(task)), name)
        contenders[name] = partial(_drop_dicts, requests, folder, rows)
    timed = interleaved(contenders, REPETITIONS)
    for name in contenders:
        if not name.startswith("bound"):
            against_what = "bound, to a file" if name == "render, to a file" else "bound"
            yield against(f"{what}: {name}, against the bound", timed, name, against_what, len(rows), None)
    for name in peers:
        yield against(f"{what}: body(), against {name}", timed, "body()", name, len(rows), 1.0)


def _drop_dicts(requests: Callable[[str, Rows], Iterator[object]], folder: str, rows: Rows) -> None:
    drop(map(orjson.dumps, requests(folder, rows)))


def _write(lines: Iterator[bytes], path: str) -> None:
    with open(path, "wb") as sink:
        sink.writelines(lines)


def _render(task: mmprompt.Task, path: str) -> None:
    with open(path, "wb", buffering=0) as sink:
        render(Renderer(task), task.samples(), ChunkWriter(sink))


def _evalscope(folder: str, rows: Rows) -> Iterator[object]:
    from evalscope.api.messages import ChatMessageUser, ContentImage, ContentText
    from evalscope.models.utils.openai import openai_chat_messages

    for row in rows:
        source = os.path.join(folder, row.image) if folder else row.image
        content = [ContentImage(image=source), ContentText(text=row.question)]
        yield {"messages": openai_chat_messages([ChatMessageUser(content=content)])}


def _inspect(folder: str, rows: Rows) -> Iterator[object]:
    from inspect_ai.model import ChatMessageUser, ContentImage, ContentText
    from inspect_ai.model._openai import messages_to_openai
    from inspect_ai.util import materialize_media

    async def request(row: inputs.Sample) -> object:
        image = ContentImage(image=await materialize_media(os.path.join(folder, row.image)))
        return await messages_to_openai([ChatMessageUser(content=[image, ContentText(text=row.question)])])

    with asyncio.Runner() as runner:
        for row in rows:
            yield {"messages": runner.run(request(row))}


def _check_peer(theirs: object, ours: bytes, name: str) -> None:
    """Refuse a peer that does not send the same picture."""
    source = json.loads(ours)["messages"][0]["content"][0]["image_url"]["url"]
    if source not in json.dumps(theirs):
        raise SystemExit(f"{name} sends another picture: {json.dumps(theirs)[:300]}")


_PEERS = {"evalscope": _evalscope, "inspect_ai": _inspect}
_NO_ADDRESSES = {"inspect_ai"}
"""Peers that send a picture by its bytes only."""

if __name__ == "__main__":
    for row in measured(sys.argv[1]):
        print(json.dumps(row), flush=True)
