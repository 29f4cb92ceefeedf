"""Rendering rows to requests, against the least that any program doing the same job must do."""

from __future__ import annotations

import base64
import filecmp
import json
import os

import inputs
import orjson
import pybase64
from timing import Row, against, interleaved

from mmprompt import dataset_task
from mmprompt.render.renderer import Renderer
from mmprompt.render.run import render
from mmprompt.targets.chunk_writer import ChunkWriter

IMAGE_BAR = 0.8
URL_BAR = 0.25


def images(folder: str, *, count: int = 2000, repetitions: int = 5) -> list[Row]:
    """Render rows with a JPEG of 100 to 250 KiB each, read from disk and written to disk."""
    rows = inputs.samples(inputs.write_jpegs(folder, count), count)
    dataset = inputs.write_rows(os.path.join(folder, "images.jsonl"), rows)
    ours, bound, stdlib = (os.path.join(folder, name) for name in ("ours.out", "bound.out", "stdlib.out"))
    warm_heap()
    contenders = {
        "mmprompt": lambda: render_with_mmprompt(dataset, ours),
        "bound": lambda: _image_bound(folder, rows, bound),
        "stdlib": lambda: _image_stdlib(folder, rows, stdlib),
    }
    timed = interleaved(contenders, repetitions)
    check_same(ours, bound)
    return [
        against("image rows, against read + pybase64 + join", timed, "mmprompt", "bound", count, IMAGE_BAR),
        against("image rows, against stdlib base64 + json", timed, "mmprompt", "stdlib", count, None),
    ]


def addresses(folder: str, *, count: int = 40_000, repetitions: int = 7) -> list[Row]:
    """Render rows whose image is an https address, which nobody opens."""
    rows = inputs.samples(inputs.urls(count), count)
    dataset = inputs.write_rows(os.path.join(folder, "urls.jsonl"), rows)
    ours, bound = os.path.join(folder, "ours.out"), os.path.join(folder, "bound.out")
    contenders = {"mmprompt": lambda: render_with_mmprompt(dataset, ours), "bound": lambda: _url_bound(dataset, bound)}
    timed = interleaved(contenders, repetitions)
    check_same(ours, bound)
    return [against("URL rows, against orjson + split + dict", timed, "mmprompt", "bound", count, URL_BAR)]


def warm_heap() -> None:
    """Raise the size up to which glibc keeps freed memory, as mmprompt does, so that all contenders have it."""
    block = bytes(30 << 20)
    del block


def render_with_mmprompt(dataset: str, target: str) -> None:
    """Render a dataset to a file."""
    task = dataset_task(dataset)
    with open(target, "wb", buffering=0) as file:
        report = render(Renderer(task), task.samples(), ChunkWriter(file))
    if report.failed:
        raise SystemExit(f"{report.failed} rows of {dataset} failed")


def _image_bound(folder: str, rows: list[inputs.Sample], target: str) -> None:
    """Read, encode, join and write; ids, questions and paths are there already, no row is parsed or checked."""
    heads = {}
    for row in rows:
        question = json.dumps(row.question, ensure_ascii=False)
        head = f'{{"id":"{row.id}","messages":[{{"role":"user","content":[{{"type":"image_url","image_url":{{"url":"data:image/jpeg;base64,'
        tail = f'"}}}},{{"type":"text","text":{question}}}]}}],"answer":"{row.answer}"}}\n'
        heads[row.id] = (os.path.join(folder, row.image), head.encode(), tail.encode())
    flags = os.O_RDONLY | os.O_CLOEXEC
    encode = pybase64.b64encode
    with open(target, "wb", buffering=0) as file:
        for path, head, tail in heads.values():
            descriptor = os.open(path, flags)
            data = os.read(descriptor, 1 << 20)
            os.close(descriptor)
            file.write(b"".join((head, encode(data), tail)))


def _image_stdlib(folder: str, rows: list[inputs.Sample], target: str) -> None:
    """Do the same with the standard library alone."""
    with open(target, "w", encoding="utf-8") as file:
        for row in rows:
            with open(os.path.join(folder, row.image), "rb") as image:
                text = base64.b64encode(image.read()).decode("ascii")
            url = f"data:image/jpeg;base64,{text}"
            file.write(json.dumps(_request(row.id, url, row.question, row.answer), ensure_ascii=False) + "\n")


def _url_bound(dataset: str, target: str) -> None:
    """Parse, split at the tags and write, with no check of anything."""
    loads, dumps = orjson.loads, orjson.dumps
    with open(dataset, "rb") as lines, open(target, "wb") as file:
        for line in lines:
            columns = loads(line)
            image, text, _ = columns["content"].split("<AIS_CONTENT_TAG>")
            url = image[len("<AIS_IMAGE_START>") :]
            request = _request(columns["id"], url, text[len("<AIS_TEXT_START>") :], columns["answer"])
            file.write(dumps(request, option=orjson.OPT_APPEND_NEWLINE))


def _request(name: str, url: str, question: str, answer: str) -> dict[str, object]:
    parts = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": question}]
    return {"id": name, "messages": [{"role": "user", "content": parts}], "answer": answer}


def check_same(ours: str, bound: str) -> None:
    """Refuse to compare programs that did not do the same."""
    if not filecmp.cmp(ours, bound, shallow=False):
        raise SystemExit(f"{ours} and {bound} differ")
