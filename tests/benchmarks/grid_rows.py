"""The rows of the grid: one function a shape, and the files that hold them.

Lengths are mixed within one file: 1 to 8 pictures, dialogues of 2 to 30 turns, sequences of 2 to 6 tags, 2 to 5 choices.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator
from itertools import islice
from random import Random

SHOTS = 4
LETTERS = "ABCDE"
WORDS = (
    "the",
    "picture",
    "of",
    "shows",
    "a",
    "red",
    "what",
    "animal",
    "stands",
    "behind",
    "how",
    "many",
    "there",
    "it",
)
ENDS = ("?", "?", "?", "?", "?", '? If there is none, say "none".', "? 图中最大的物体是什么颜色的？")

_PARTS = {
    "image": {"type": "image_url", "image_url": {"url": "{image}"}},
    "text": {"type": "text", "text": "{question}"},
}
_ASKED, _SAID = {"role": "HUMAN", "prompt_mm": _PARTS}, {"role": "BOT", "prompt": "{answer}"}
_TEMPLATE = {"type": "MMPromptTemplate", "template": {"round": [_ASKED]}}
_SHOT = {"type": "MMPromptTemplate", "template": {"begin": ["</E>"], "round": [_ASKED, _SAID]}, "ice_token": "</E>"}
TASKS: dict[str, dict[str, object]] = {
    "template": {"prompt_template": _TEMPLATE, "inferencer": {"type": "GenInferencer", "max_out_len": 64}},
    "four-shot": {
        "ice_template": {"type": "MMPromptTemplate", "template": {"round": [_ASKED, _SAID]}},
        "prompt_template": _SHOT,
        "retriever": {"type": "FixKRetriever", "fix_id_list": list(range(SHOTS))},
    },
    "multi-turn": {
        "prompt_template": {"type": "MultiTurnPromptTemplate", "template": {"round": [_ASKED, _SAID]}},
        "inferencer": {"type": "MultiTurnGenInferencer", "infer_mode": "last"},
    },
}
"""The shapes whose rows need a task file, and its ``infer_cfg``."""

Source = Callable[[], object]
"""Gives the next medium as a row names it."""

Columns = dict[str, object]


def tagged(draw: Random, source: Source) -> Columns:
    return {"content": _tag("IMAGE", source()) + _tag("TEXT", _question(draw)), "answer": _text(draw, 3)}


def tag_sequence(draw: Random, source: Source) -> Columns:
    kinds = ["IMAGE", "TEXT", *draw.choices(("IMAGE", "TEXT"), k=draw.randint(0, 4))]
    draw.shuffle(kinds)
    content = "".join(_tag(kind, source() if kind == "IMAGE" else _question(draw)) for kind in kinds)
    return {"content": content, "answer": _text(draw, 3)}


def columns(draw: Random, source: Source) -> Columns:
    return {"image": source(), "question": _question(draw), "answer": _text(draw, 3)}


def sound(draw: Random, source: Source) -> Columns:
    return {"audio": source(), "question": _question(draw), "answer": _text(draw, 3)}


def options(draw: Random, source: Source) -> Columns:
    texts = [_text(draw, 3) for _ in range(draw.randint(2, 5))]
    return {"image": source(), "question": _question(draw), "options": texts, "answer": draw.choice("AB")}


def lettered(draw: Random, source: Source) -> Columns:
    choices = {letter: _text(draw, 3) for letter in LETTERS[:4]}
    return {"image": source(), "question": _question(draw), **choices, "answer": draw.choice("AB")}


def images(draw: Random, source: Source) -> Columns:
    return {"images": [source() for _ in range(draw.randint(1, 8))], "question": _question(draw), "answer": "3"}


def chat(draw: Random, source: Source) -> Columns:
    messages: list[Columns] = []
    for asked, said, pictures in _turns(draw, most=1):
        parts = [{"type": "image_url", "image_url": {"url": source()}} for _ in range(pictures)]
        content = [*parts, {"type": "text", "text": asked}] if parts else asked
        messages += ({"role": "user", "content": content}, {"role": "assistant", "content": said})
    return {"messages": messages[:-1], "answer": messages[-1]["content"]}


def sharegpt(draw: Random, source: Source) -> Columns:
    turns, names = [], []
    for asked, said, pictures in _turns(draw, most=2):
        names += [source() for _ in range(pictures)]
        turns += ({"from": "human", "value": "<image>\n" * pictures + asked}, {"from": "gpt", "value": said})
    return {"images": names, "conversations": turns}


def llava(draw: Random, source: Source) -> Columns:
    turns: list[Columns] = []
    for asked, said, _ in _turns(draw, most=0):
        mark = "" if turns else "<image>\n"
        turns += ({"from": "human", "value": mark + asked}, {"from": "gpt", "value": said})
    return {"image": source(), "conversations": turns}


def trl(draw: Random, source: Source) -> Columns:
    messages, names = list[Columns](), list[object]()
    for asked, said, pictures in _turns(draw, most=2):
        names += [source() for _ in range(pictures)]
        parts = [{"type": "image"}] * pictures + [{"type": "text", "text": asked}]
        messages += ({"role": "user", "content": parts}, {"role": "assistant", "content": said})
    return {"images": names, "prompt": messages[:-1], "completion": messages[-1:]}


def turns(draw: Random, source: Source) -> Columns:
    made = list(_turns(draw, most=1))
    return {"image": [source() for _ in made], "question": [a for a, *_ in made], "answer": [s for _, s, _ in made]}


SHAPES = {
    "tags": tagged,
    "tag sequence": tag_sequence,
    "columns": columns,
    "sound": sound,
    "options": options,
    "choices A-D": lettered,
    "images": images,
    "chat": chat,
    "sharegpt": sharegpt,
    "llava": llava,
    "trl": trl,
    "template": columns,
    "four-shot": columns,
    "multi-turn": turns,
}


def _turns(draw: Random, *, most: int) -> Iterator[tuple[str, str, int]]:
    """Yield question, answer and number of pictures, 1 to 15 times; the first turn has a picture at least."""
    for turn in range(draw.randint(1, 15)):
        pictures = 1 if not turn else draw.choice((0, 0, 0, 1))
        yield _question(draw), _text(draw, 12), most and pictures * draw.randint(1, most)


def _question(draw: Random) -> str:
    return _text(draw, draw.randint(4, 16)) + draw.choice(ENDS)


def _text(draw: Random, words: int) -> str:
    return " ".join(draw.choices(WORDS, k=words)).capitalize()


def _tag(kind: str, value: object) -> str:
    return f"<AIS_{kind}_START>{value}<AIS_CONTENT_TAG>"


def rows(shape: str, ids: str, source: Source) -> Iterator[Columns]:
    """Yield rows without end; ``ids`` are ``text``, ``number`` or ``none``."""
    draw, number = Random(7), 0
    while True:
        own: Columns = {} if ids == "none" else {"id": f"q-{number}" if ids == "text" else 1000 + number}
        yield {**own, **SHAPES[shape](draw, source)}
        number += 1


def write(folder: str, name: str, shape: str, made: Iterator[Columns], most: int, size: int) -> tuple[str, str, int]:
    """Write at most so many rows, and about so many bytes. Return the file, what mmprompt opens, and how many."""
    path = os.path.join(folder, name)
    count = _WRITERS[name.rpartition(".")[2]](path, made, most, size)
    if shape not in TASKS:
        return path, path, count
    dataset = {"path": name, "train": "train.jsonl"} if shape == "four-shot" else {"path": name}
    with open(path + ".json", "w", encoding="utf-8") as task:
        json.dump({"dataset": dataset, "infer_cfg": TASKS[shape]}, task)
    if shape == "four-shot":
        _write_lines(os.path.join(folder, "train.jsonl"), made, SHOTS, size)
    return path, task.name, count


def _write_lines(path: str, made: Iterator[Columns], most: int, size: int) -> int:
    count = 0
    with open(path, "w", encoding="utf-8") as file:
        while count < most and size > 0:
            size -= file.write(json.dumps(next(made), ensure_ascii=False) + "\n")
            count += 1
    return count


def _write_cells(path: str, made: Iterator[Columns], most: int, size: int) -> int:
    count, first = 0, next(made)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(first)
        while count < most and file.tell() < size:
            row = next(made) if count else first
            writer.writerow([v if isinstance(v, str) else json.dumps(v) for v in row.values()])
            count += 1
    return count


def _write_table(path: str, made: Iterator[Columns], most: int, size: int) -> int:
    import pyarrow as pa  # an extra
    import pyarrow.parquet as pq

    del size
    table = pa.Table.from_pylist(list(islice(made, most)))
    pq.write_table(table, path, row_group_size=500)
    return most


_WRITERS = {"jsonl": _write_lines, "csv": _write_cells, "parquet": _write_table}


def write_sounds(folder: str, count: int) -> list[str]:
    """Write WAV files of 1 to 10 seconds, 16 kHz, 16 bit, mono, and return their names."""
    import wave

    draw, names = Random(7), [f"media/{number:05}.wav" for number in range(count)]
    noise = draw.randbytes(320_000)
    for name in names:
        with wave.open(os.path.join(folder, name), "wb") as file:
            file.setparams((1, 2, 16_000, 0, "NONE", ""))
            file.writeframes(noise[: draw.randint(16_000, 160_000) * 2])
    return names
