"""The bound of the grid: the least that a program written by hand for one shape and one target must do.

It reads the same file, parses each row, and reads and encodes its media. It checks nothing. Rows of one medium and one
text are joined between pieces that are ready, and rows of lists and dialogues go through ``orjson``, whichever costs
less. ``python grid_bound.py CELL PATH HOW LIMIT`` writes the lines to the null device, as a process of its own: it loads
neither mmprompt nor NumPy.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import orjson
import pybase64

ROOM = 1 << 20
IMAGE, TEXT, END, MARK = "<AIS_IMAGE_START>", "<AIS_TEXT_START>", "<AIS_CONTENT_TAG>", "<image>"
DATA = "data:image/jpeg;base64,"
dumps, join = orjson.dumps, b"".join

Columns = dict[str, Any]
Make = Callable[[Columns, object], bytes]
"""From a row and its id to the line."""


class Cell(NamedTuple):
    """What a line of the grid measures: see ``grid.py``."""

    shape: str
    medium: str = "url"
    ids: str = "text"
    form: str = "jsonl"
    target: str = "vllm"

    @property
    def name(self) -> str:
        return f"{self.shape}, {self.medium}, {self.ids} ids, {self.form}, {self.target}"


_PARTS: dict[tuple[str, str], Callable[[Any], Columns]] = {
    ("openai", "url"): lambda value: {"type": "image_url", "image_url": {"url": value}},
    ("openai", "wav"): lambda value: {"type": "input_audio", "input_audio": {"data": value, "format": "wav"}},
    ("vllm", "wav"): lambda value: {"type": "audio_url", "audio_url": {"url": value}},
    ("anthropic", "url"): lambda value: {"type": "image", "source": {"type": "url", "url": value}},
    ("anthropic", "jpeg"): lambda value: {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/jpeg", "data": value},
    },
    ("gemini", "url"): lambda value: {"file_data": {"file_uri": value, "mime_type": "image/jpeg"}},
    ("gemini", "jpeg"): lambda value: {"inline_data": {"mime_type": "image/jpeg", "data": value}},
    ("gemini", "wav"): lambda value: {"inline_data": {"mime_type": "audio/wav", "data": value}},
}


class Wire:
    """A target's JSON. ``medium`` makes a content part; ``dumps`` a line, with the base64 of the parts in it."""

    def __init__(self, target: str, medium: str, encode: Callable[[Any], bytes]) -> None:
        self.key, self.content = ("contents", "parts") if target == "gemini" else ("messages", "content")
        self.is_openai = target in ("vllm", "openai")
        self.part = _PARTS.get((target, medium)) or _PARTS["openai", "url"]
        self.encode = encode
        self.prefix = f"data:{'audio/wav' if medium == 'wav' else 'image/jpeg'};base64,"
        if not self.is_openai or (target, medium) == ("openai", "wav"):
            self.prefix = ""
        self.is_url = medium == "url"
        self.medium, self.dumps = self.part, partial(dumps, option=orjson.OPT_APPEND_NEWLINE)
        if not self.is_url:
            self._ready = self.part(orjson.Fragment(b'"%b\0"' % self.prefix.encode()))
            self._base64: list[bytes] = []
            self.medium, self.dumps = self._hole, self._filled

    def text(self, value: str) -> Columns:
        return {"text": value} if self.content == "parts" else {"type": "text", "text": value}

    def _hole(self, value: object) -> Columns:
        self._base64.append(self.encode(value))
        return self._ready

    def _filled(self, line: Columns) -> bytes:
        first, *rest = dumps(line, option=orjson.OPT_APPEND_NEWLINE).split(b"\0")
        pieces = [first]
        for base64, piece in zip(self._base64, rest):  # noqa: B905  # the fastest way
            pieces += (base64, piece)
        self._base64.clear()
        return join(pieces)


def one_medium(wire: Wire, text: Callable[[Columns], str], column: str = "image", shots: Any = ()) -> Make:
    """A medium, then a text; the messages of ``shots`` stand before, and are joined once."""
    value = "@medium" if wire.is_url else f"{wire.prefix}@medium"
    asked = {"role": "user", wire.content: [wire.part(value), wire.text("@text")]}
    line = wire.dumps({"id": "@id", wire.key: [*shots, asked], "answer": "@answer"})
    begin, line = line.split(b'"@id"')
    before, line = line.split(b'"@medium"' if wire.is_url else b"@medium")
    (between, line), encode = line.split(b'"@text"'), wire.encode
    after, end = line.split(b'"@answer"')

    def make(row: Columns, name: object) -> bytes:
        found = encode(row[column])
        return join((begin, dumps(name), before, found, between, dumps(text(row)), after, dumps(row["answer"]), end))

    return make


def four_shot(wire: Wire, train: list[Columns]) -> Make:
    shots = []
    for row in train:
        parts = [wire.medium(row["image"]), wire.text(row["question"])]
        shots += ({"role": "user", "content": parts}, {"role": "assistant", "content": row["answer"]})
    return one_medium(wire, _question, shots=shots)


def tags(wire: Wire) -> Make:
    make = one_medium(wire, _question)

    def split(row: Columns, name: object) -> bytes:
        image, text, _ = row["content"].split(END)
        row["image"], row["question"] = image[len(IMAGE) :], text[len(TEXT) :]
        return make(row, name)

    return split


def tag_sequence(wire: Wire) -> Make:
    def make(row: Columns, name: object) -> bytes:
        parts = [
            wire.medium(s[len(IMAGE) :]) if s.startswith(IMAGE) else {"type": "text", "text": s[len(TEXT) :]}
            for s in row["content"].split(END)[:-1]
        ]
        return wire.dumps({"id": name, "messages": [{"role": "user", "content": parts}], "answer": row["answer"]})

    return make


def images(wire: Wire) -> Make:
    key, content, medium = wire.key, wire.content, wire.medium

    def make(row: Columns, name: object) -> bytes:
        parts = [medium(image) for image in row["images"]]
        parts.append(wire.text(row["question"]))
        return wire.dumps({"id": name, key: [{"role": "user", content: parts}], "answer": row["answer"]})

    return make


def chat(wire: Wire) -> Make:
    def parts(content: list[Columns]) -> list[Columns]:
        return [
            wire.text(part["text"])
            if part["type"] == "text"
            else wire.medium(part["image_url"]["url"].removeprefix(DATA))
            for part in content
        ]

    def same(row: Columns, name: object) -> bytes:
        return wire.dumps({"id": name, "messages": row["messages"], "answer": row["answer"]})

    def make(row: Columns, name: object) -> bytes:
        for message in row["messages"]:
            if type(message["content"]) is list:
                message["content"] = parts(message["content"])
        return same(row, name)

    def gemini(row: Columns, name: object) -> bytes:
        contents = []
        for message in row["messages"]:
            said = message["content"]
            role = "user" if message["role"] == "user" else "model"
            contents.append({"role": role, "parts": [{"text": said}] if type(said) is str else parts(said)})
        return wire.dumps({"id": name, "contents": contents, "answer": row["answer"]})

    return gemini if wire.key == "contents" else same if wire.is_openai and wire.is_url else make


def marked(wire: Wire) -> Make:
    """ShareGPT and LLaVA."""
    roles = {"human": "user", "gpt": "assistant"}

    def make(row: Columns, name: object) -> bytes:
        media = iter(row.get("images") or (row["image"],))
        *before, last = row["conversations"]
        messages = []
        for turn in before:
            said: Any = turn["value"]
            if MARK in said:
                first, *rest = said.split(MARK)
                said = [{"type": "text", "text": first}] if first else []
                for text in rest:
                    said.append(wire.medium(next(media)))
                    if text := text.removeprefix("\n"):
                        said.append({"type": "text", "text": text})
            messages.append({"role": roles[turn["from"]], "content": said})
        return wire.dumps({"id": name, "messages": messages, "answer": last["value"]})

    return make


def trl(wire: Wire) -> Make:
    def make(row: Columns, name: object) -> bytes:
        media = iter(row["images"])
        for message in row["prompt"]:
            content = message["content"]
            if len(content) == 1:  # a text alone
                message["content"] = content[0]["text"]
            elif type(content) is list:
                message["content"] = [part if part["type"] == "text" else wire.medium(next(media)) for part in content]
        return wire.dumps({"id": name, "messages": row["prompt"], "answer": row["completion"][0]["content"]})

    return make


def multi_turn(wire: Wire) -> Make:
    def make(row: Columns, name: object) -> bytes:
        *before, last = row["answer"]
        messages = []
        for image, text, said in zip(row["image"], row["question"], row["answer"]):  # noqa: B905  # the fastest way
            messages.append({"role": "user", "content": [wire.medium(image), {"type": "text", "text": text}]})
            messages.append({"role": "assistant", "content": said})
        del messages[-1]
        return wire.dumps({"id": name, "turn": len(before), "messages": messages, "answer": last})

    return make


def _question(row: Columns) -> str:
    return row["question"]


def _optioned(row: Columns) -> str:
    return "\n".join([row["question"], *[f"{a}. {b}" for a, b in zip("ABCDE", row["options"])]])  # noqa: B905


def _lettered(row: Columns) -> str:
    return f"{row['question']}\nA. {row['A']}\nB. {row['B']}\nC. {row['C']}\nD. {row['D']}"


SHAPES: dict[str, Callable[..., Make]] = {
    "tags": tags,
    "tag sequence": tag_sequence,
    "columns": partial(one_medium, text=_question),
    "sound": partial(one_medium, text=_question, column="audio"),
    "options": partial(one_medium, text=_optioned),
    "choices A-D": partial(one_medium, text=_lettered),
    "images": images,
    "chat": chat,
    "sharegpt": marked,
    "llava": marked,
    "trl": trl,
    "template": partial(one_medium, text=_question),
    "four-shot": four_shot,
    "multi-turn": multi_turn,
}


def _with_room(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    data = os.read(descriptor, ROOM)
    os.close(descriptor)
    return data


def _opened(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


READS = {"os.read": _with_room, "open": _opened}


def _encoder(medium: str, folder: str, how: str) -> Callable[[Any], bytes]:
    """Return what makes of a value in a row what stands in its place."""
    read, encode = READS[how], pybase64.b64encode
    if medium in ("url", "base64"):
        return dumps if medium == "url" else str.encode
    return (lambda value: encode(value["bytes"])) if medium == "bytes" else lambda name: encode(read(folder + name))


def _lines(path: str) -> Iterator[Columns]:
    with open(path, "rb", buffering=ROOM) as file:  # a long line is put together of what the buffer holds
        yield from map(orjson.loads, file)


def _cells(path: str) -> Iterator[Columns]:
    with open(path, encoding="utf-8", newline="") as file:
        cells = csv.reader(file)
        head = next(cells)
        for row in cells:
            columns: Columns = dict(zip(head, row))  # noqa: B905  # the fastest way
            if "images" in columns:
                columns["images"] = orjson.loads(columns["images"])
            yield columns


def _table(path: str) -> Iterator[Columns]:
    import pyarrow.parquet as pq  # an extra

    file = pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 16)
    rows = ROOM * file.metadata.num_rows // max(1, os.path.getsize(path))
    for batch in file.iter_batches(batch_size=max(1, min(rows, 1000)), use_threads=False):  # as the cache holds
        yield from batch.to_pylist()


_READERS = {"jsonl": _lines, "csv": _cells, "parquet": _table}


def lines(cell: Cell, path: str, how: str) -> Iterator[bytes]:
    """Yield the lines that ``mmprompt render`` writes. ``how`` is the way to read a file, of ``READS``."""
    folder = os.path.dirname(path) + "/"
    kind = "jpeg" if cell.medium in ("base64", "bytes") else cell.medium
    wire = Wire(cell.target, kind, _encoder(cell.medium, folder, how))
    more = {"train": list(_lines(folder + "train.jsonl"))} if cell.shape == "four-shot" else {}
    make = SHAPES[cell.shape](wire, **more)
    rows = _READERS[cell.form](path)
    if cell.ids == "none":
        return (make(row, number) for number, row in enumerate(rows))
    return (make(row, row["id"]) for row in rows)


def warm_heap() -> None:
    """Raise the size up to which glibc keeps freed memory, as mmprompt does."""
    block = bytes(30 << 20)
    del block


if __name__ == "__main__":
    warm_heap()
    with open(os.devnull, "wb") as sink:
        sink.writelines(islice(lines(Cell(*json.loads(sys.argv[1])), *sys.argv[2:4]), int(sys.argv[4])))
