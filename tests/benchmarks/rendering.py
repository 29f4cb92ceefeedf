"""Rows to requests through both doors, against the least that any program doing the same job must do.

One door is ``render``, as the command line uses it. The other is ``task.requests`` with ``body()``, as a Python program
sends requests. Nothing is written to a disk: what is rendered goes to the null device.
"""

from __future__ import annotations

import base64
import io
import json
import os
from collections.abc import Iterator

import inputs
import orjson
import pybase64
from timing import Row, against, interleaved

from mmprompt import Task, dataset_task
from mmprompt.render.renderer import Renderer
from mmprompt.render.run import render
from mmprompt.targets.chunk_writer import ChunkWriter

IMAGE_BAR, IMAGE_BODY_BAR = 0.95, 0.7
URL_BAR, URL_BODY_BAR = 0.5, 0.3
COLUMNS_BAR, COLUMNS_BODY_BAR = 0.3, 0.2
COMPARED = 50

Pieces = list["bytes | str"]
"""A request in pieces: its JSON as bytes, and between them the path of each picture."""


def images(folder: str, *, count: int = 2000, repetitions: int = 50) -> list[Row]:
    """Make requests of rows with a JPEG of 100 to 250 KiB each, read from the page cache."""
    rows = inputs.samples(inputs.write_jpegs(folder, count), count)
    dataset = inputs.write_rows(os.path.join(folder, "images.jsonl"), rows)
    task = dataset_task(dataset)
    check_same(task, image_lines(folder, rows))
    warm_heap()
    contenders = {
        "render": lambda: render_to_nowhere(task),
        "body": lambda: drop(bodies(task)),
        "bound": lambda: drop(image_lines(folder, rows)),
    }
    timed = interleaved(contenders, repetitions)
    timed |= interleaved({"stdlib": lambda: drop(_stdlib_lines(folder, rows))}, 3)
    return [
        against("render, JPEG rows, against read + pybase64 + join", timed, "render", "bound", count, IMAGE_BAR),
        against("the same, against stdlib base64 + json", timed, "render", "stdlib", count, None),
        against("body(), JPEG rows, against read + pybase64 + join", timed, "body", "bound", count, IMAGE_BODY_BAR),
    ]


def addresses(folder: str, *, count: int = 20_000, repetitions: int = 40) -> list[Row]:
    """Make requests of rows whose image is an https address, which nobody opens: in tags, and in a column of its own.

    The bound of both is that of the rows with tags.
    """
    rows = inputs.samples(inputs.urls(count), count)
    dataset = inputs.write_rows(os.path.join(folder, "urls.jsonl"), rows)
    task = dataset_task(dataset)
    columns = dataset_task(inputs.write_columns(os.path.join(folder, "columns.jsonl"), rows))
    check_same(task, url_lines(dataset))
    check_same(columns, url_lines(dataset))
    contenders = {
        "render": lambda: render_to_nowhere(task),
        "body": lambda: drop(bodies(task)),
        "columns": lambda: render_to_nowhere(columns),
        "columns body": lambda: drop(bodies(columns)),
        "bound": lambda: drop(url_lines(dataset)),
    }
    timed = interleaved(contenders, repetitions)
    what = "against orjson + split + dict"
    return [
        against(f"render, URL rows, {what}", timed, "render", "bound", count, URL_BAR),
        against(f"body(), URL rows, {what}", timed, "body", "bound", count, URL_BODY_BAR),
        against("render, columns image and question, against the same", timed, "columns", "bound", count, COLUMNS_BAR),
        against("body(), columns, against the same", timed, "columns body", "bound", count, COLUMNS_BODY_BAR),
    ]


def warm_heap() -> None:
    """Raise the size up to which glibc keeps freed memory, as mmprompt does, so that all contenders have it."""
    block = bytes(30 << 20)
    del block


def bodies(task: Task) -> Iterator[bytes]:
    """Yield the body of each request."""
    return (request.body() for request in task.requests())


def render_to_nowhere(task: Task) -> None:
    """Render a task's rows to the null device."""
    with open(os.devnull, "wb", buffering=0) as sink:
        renderer = Renderer(task)
        report = render(renderer, task.samples(), ChunkWriter(sink))
    if report.failed:
        raise SystemExit(f"{report.failed} rows failed")


def drop(made: Iterator[bytes]) -> None:
    """Write each request to the null device."""
    with open(os.devnull, "wb") as sink:
        sink.writelines(made)


def check_same(task: Task, bound: Iterator[bytes]) -> None:
    """Refuse to compare programs that do not do the same: the first lines must be equal, and hold the bodies."""
    buffer = io.BytesIO()
    with ChunkWriter(buffer) as writer:
        renderer = Renderer(task)
        render(renderer, task.samples(), writer, limit=COMPARED)
    lines = buffer.getvalue().splitlines(keepends=True)
    for ours, line, body in zip(lines, bound, bodies(task), strict=False):  # the bound and the bodies go on
        if ours != line or body[1:-1] not in line:
            raise SystemExit(f"requests differ: {ours[:300]!r} … {line[:300]!r} … {body[:300]!r} …")


def image_lines(folder: str, rows: list[inputs.Sample], shots: Pieces | None = None) -> Iterator[bytes]:
    """Read, encode and join; ids, questions and paths are there already, no row is parsed or checked."""
    for row in rows:
        begin, end = f'{{"id":"{row.id}","messages":[', f'],"answer":"{row.answer}"}}\n'
        yield joined([begin.encode(), *(shots or ()), *question_pieces(folder, row), end.encode()])


def question_pieces(folder: str, row: inputs.Sample) -> Pieces:
    """Return the message that asks a row's question."""
    text = json.dumps(row.question, ensure_ascii=False)
    head = '{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,'
    tail = f'"}}}},{{"type":"text","text":{text}}}]}}'
    return [head.encode(), os.path.join(folder, row.image), tail.encode()]


def joined(pieces: Pieces) -> bytes:
    """Return the pieces as one, each path replaced by the base64 of its file."""
    found = []
    for piece in pieces:
        if isinstance(piece, bytes):
            found.append(piece)
            continue
        descriptor = os.open(piece, os.O_RDONLY | os.O_CLOEXEC)
        data = os.read(descriptor, 1 << 20)
        os.close(descriptor)
        found.append(pybase64.b64encode(data))
    return b"".join(found)


def _stdlib_lines(folder: str, rows: list[inputs.Sample]) -> Iterator[bytes]:
    """Do the same with the standard library alone."""
    for row in rows:
        with open(os.path.join(folder, row.image), "rb") as image:
            text = base64.b64encode(image.read()).decode("ascii")
        request = _request(row.id, f"data:image/jpeg;base64,{text}", row.question, row.answer)
        yield (json.dumps(request, ensure_ascii=False) + "\n").encode()


def url_lines(dataset: str) -> Iterator[bytes]:
    """Parse, split at the tags and dump, with no check of anything."""
    loads, dumps = orjson.loads, orjson.dumps
    with open(dataset, "rb") as lines:
        for line in lines:
            columns = loads(line)
            image, text, _ = columns["content"].split("<AIS_CONTENT_TAG>")
            url = image[len("<AIS_IMAGE_START>") :]
            request = _request(columns["id"], url, text[len("<AIS_TEXT_START>") :], columns["answer"])
            yield dumps(request, option=orjson.OPT_APPEND_NEWLINE)


def _request(name: str, url: str, question: str, answer: str) -> dict[str, object]:
    parts = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": question}]
    return {"id": name, "messages": [{"role": "user", "content": parts}], "answer": answer}
