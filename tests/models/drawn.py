"""The LLaVA under ``fixtures/llava``, datasets of pictures that it can answer, and tasks over them."""

from __future__ import annotations

import json
import random
import runpy
from pathlib import Path
from typing import Any

from PIL import Image

FIXTURE = Path(__file__).parents[2] / "fixtures" / "llava"
_SCRIPT = runpy.run_path(str(FIXTURE / "train.py"))
COLOURS, SIDES, picture = list(_SCRIPT["COLOURS"]), _SCRIPT["SIDES"], _SCRIPT["picture"]
COLOUR, SIDE, TWO, AGAIN = (_SCRIPT[name] for name in ("COLOUR", "SIDE", "COLOURS_OF_TWO", "AGAIN"))
SHORT = {"max_tokens": 8}

ASKED = {
    "role": "HUMAN",
    "prompt_mm": {
        "image": {"type": "image_url", "image_url": {"url": "{image}"}},
        "text": {"type": "text", "text": "{question}"},
    },
}


def draw(folder: Path, number: int, name: str | None = None, **options: Any) -> tuple[str, str, str]:
    """Draw a picture that training never saw, and return its file, colour and side."""
    chosen = random.Random(number)
    colour, side = chosen.choice(COLOURS), chosen.choice(SIDES)
    file = name or f"{number}.png"
    picture(colour, side, seed=2**40 + number, **options).save(folder / file)
    return file, colour, side


def single(folder: Path, count: int, start: int = 0) -> list[dict[str, Any]]:
    """Rows of one picture, each asked for its colour or its side."""
    rows = []
    for number in range(start, start + count):
        file, colour, side = draw(folder, number)
        question, answer = (COLOUR, colour) if number % 2 else (SIDE, side)
        rows.append({"id": f"one-{number}", "image": file, "question": question, "answer": answer})
    return rows


def odd(folder: Path, count: int) -> list[dict[str, Any]]:
    """Rows of pictures as other programs save them: with a palette, alpha, an orientation, lossy, or grey."""
    rows = single(folder, count)
    for number, row in enumerate(rows):
        with Image.open(folder / row["image"]) as plain:
            image = plain.convert("RGB")
        exif = Image.Exif()
        exif[0x0112] = 3
        name, made, options = (
            ("palette.png", image.quantize(32), {}),
            ("alpha.png", image.convert("RGBA"), {}),
            ("turned.jpg", image.rotate(180), {"exif": exif, "quality": 95}),
            ("lossy.webp", image, {"quality": 60}),
            ("grey.png", image.convert("L"), {}),
            ("clear.png", image.quantize(16), {"transparency": 0}),
        )[number % 6]
        row["image"] = f"{number}-{name}"
        made.save(folder / row["image"], **options)
    return rows


def pairs(folder: Path, count: int, start: int = 1000) -> list[dict[str, Any]]:
    """Rows of two pictures, asked for their colours in order."""
    rows = []
    for number in range(start, start + 2 * count, 2):
        first, second = draw(folder, number), draw(folder, number + 1)
        answer = f"{first[1]} then {second[1]}"
        rows.append({"id": f"two-{number}", "image": [first[0], second[0]], "question": TWO, "answer": answer})
    return rows


def dialogues(folder: Path, count: int, start: int = 2000) -> list[dict[str, Any]]:
    """Rows of two turns, of which the second asks for the first reply. Every second answer to the first is wrong."""
    rows = []
    for number in range(start, start + count):
        file, colour, _ = draw(folder, number)
        said = colour if number % 2 else COLOURS[(COLOURS.index(colour) + 1) % len(COLOURS)]
        asked = {"image": [[file], []], "question": [COLOUR, AGAIN]}
        rows.append({"id": f"talk-{number}", **asked, "answer": [said, said], "true": colour})
    return rows


def written(folder: Path, rows: list[dict[str, Any]], infer: dict[str, Any] | None = None, **task: Any) -> Path:
    """Write rows and a task file over them, and return the file."""
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    config = {"dataset": {"path": "rows.jsonl"}, **({"infer_cfg": infer} if infer else {}), **task}
    (folder / "task.json").write_text(json.dumps(config), encoding="utf-8")
    return folder / "task.json"


def dialogue(mode: str) -> dict[str, Any]:
    """The ``infer_cfg`` of a dialogue."""
    template = {
        "type": "MultiTurnPromptTemplate",
        "template": {"round": [ASKED, {"role": "BOT", "prompt": "{answer}"}]},
    }
    return {"prompt_template": template, "inferencer": {"type": "MultiTurnGenInferencer", "infer_mode": mode}}


def labels(question: str, names: list[str], *, image: bool) -> dict[str, Any]:
    """The ``infer_cfg`` of a task that compares labels."""
    asked = ASKED if image else {"role": "HUMAN", "prompt": "{question}"}
    templates = {name: {"round": [asked, {"role": "BOT", "prompt": name}]} for name in names}
    kind = "MMPromptTemplate" if image else "PromptTemplate"
    return {"prompt_template": {"type": kind, "template": templates}, "inferencer": {"type": "PPLInferencer"}}
