"""Four-shot prompts whose examples have a picture each, through both doors, against read + pybase64 + join."""

from __future__ import annotations

import json
import os

import inputs
from rendering import Pieces, bodies, check_same, drop, image_lines, question_pieces, render_to_nowhere, warm_heap
from timing import Row, against, interleaved

from mmprompt import load_task

BAR = 0.6
SHOTS = 4

_PICTURE = {"type": "image_url", "image_url": {"url": "file://{image}"}}
_ASKED = {"role": "HUMAN", "prompt_mm": {"image": _PICTURE, "text": {"type": "text", "text": "{question}"}}}
_ROUND = {"round": [_ASKED, {"role": "BOT", "prompt": "{answer}"}]}
_INFER = {
    "ice_template": {"type": "MMPromptTemplate", "template": _ROUND},
    "prompt_template": {"type": "MMPromptTemplate", "template": {"begin": ["</E>"], **_ROUND}, "ice_token": "</E>"},
    "retriever": {"type": "FixKRetriever", "fix_id_list": list(range(SHOTS))},
}


def pictures(folder: str, *, count: int = 400, repetitions: int = 15) -> list[Row]:
    """Make requests of five JPEGs each: those of the examples are read, encoded and joined for each request anew."""
    folder = os.path.join(folder, "shots")
    rows = inputs.samples(inputs.write_jpegs(folder, SHOTS + count), SHOTS + count)
    train, test = rows[:SHOTS], rows[SHOTS:]
    files = {"path": os.path.join(folder, "test.jsonl"), "train": os.path.join(folder, "train.jsonl")}
    for path, part in ((files["train"], train), (files["path"], test)):
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row._asdict()) + "\n" for row in part)
    task = load_task({"dataset": files, "infer_cfg": _INFER})
    shots: Pieces = []
    for row in train:
        shots += [*question_pieces(folder, row), f',{{"role":"assistant","content":"{row.answer}"}},'.encode()]
    check_same(task, image_lines(folder, test, shots))
    warm_heap()
    contenders = {
        "render": lambda: render_to_nowhere(task),
        "body": lambda: drop(bodies(task)),
        "bound": lambda: drop(image_lines(folder, test, shots)),
    }
    timed = interleaved(contenders, repetitions)
    what = f"{SHOTS}-shot JPEG rows, against read + pybase64 + join"
    return [
        against(f"render, {what}", timed, "render", "bound", count, None),
        against(f"body(), {what}", timed, "body", "bound", count, BAR),
    ]
