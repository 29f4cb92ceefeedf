"""Rows of one to sixteen pictures each, through both doors, against read + pybase64 + join."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import inputs
from rendering import Pieces, bodies, check_same, drop, joined, render_to_nowhere, warm_heap
from timing import Row, against, interleaved

from mmprompt import dataset_task

BAR, BODY_BAR = 0.8, 0.6
MOST = 16


def pictures(folder: str, *, count: int = 320, repetitions: int = 15) -> list[Row]:
    """Make requests of 1 to 16 JPEGs each, read from the page cache."""
    folder = os.path.join(folder, "several")
    names = inputs.write_jpegs(folder, inputs.DISTINCT)
    rows = [
        (f"q-{row}", [names[(row * 7 + at) % len(names)] for at in range(1 + row * 5 % MOST)]) for row in range(count)
    ]
    dataset = _write(os.path.join(folder, "several.jsonl"), rows)
    task = dataset_task(dataset)
    check_same(task, _lines(folder, rows))
    warm_heap()
    contenders = {
        "render": lambda: render_to_nowhere(task),
        "body": lambda: drop(bodies(task)),
        "bound": lambda: drop(_lines(folder, rows)),
    }
    timed = interleaved(contenders, repetitions)
    what = f"rows of 1 to {MOST} JPEGs, against read + pybase64 + join"
    return [
        against(f"render, {what}", timed, "render", "bound", count, BAR),
        against(f"body(), {what}", timed, "body", "bound", count, BODY_BAR),
    ]


_QUESTION = "Which of the pictures was taken first?"


def _write(path: str, rows: list[tuple[str, list[str]]]) -> str:
    """Write rows as AIS JSONL and return the path."""
    with open(path, "w", encoding="utf-8") as file:
        for name, images in rows:
            tags = "".join([f"<AIS_IMAGE_START>{image}<AIS_CONTENT_TAG>" for image in images])
            content = f"{tags}<AIS_TEXT_START>{_QUESTION}<AIS_CONTENT_TAG>"
            file.write(json.dumps({"id": name, "content": content, "answer": "the last"}) + "\n")
    return path


def _lines(folder: str, rows: list[tuple[str, list[str]]]) -> Iterator[bytes]:
    """Read, encode and join; nothing is parsed or checked."""
    for name, images in rows:
        pieces: Pieces = [f'{{"id":"{name}","messages":[{{"role":"user","content":['.encode()]
        for image in images:
            pieces += [
                b'{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,',
                os.path.join(folder, image),
                b'"}},',
            ]
        pieces.append(f'{{"type":"text","text":"{_QUESTION}"}}]}}],"answer":"the last"}}\n'.encode())
        yield joined(pieces)
