"""Datasets to measure with, made under a temporary folder."""

from __future__ import annotations

import io
import json
import os
from typing import NamedTuple

import numpy as np
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
PHOTOGRAPHS = os.path.join(HERE, "..", "..", "fixtures", "tour", "media")
NAMES = ("astronaut", "camera", "chelsea", "coffee", "hubble", "retina", "rocket")
SMALLEST, LARGEST = 100 << 10, 250 << 10
DISTINCT = 200

_QUESTIONS = (
    "What is to be seen in the middle of the picture, and what stands behind it?",
    "How many persons are there? Answer with a number.",
    "图中最大的物体是什么颜色的？",
    'Read the sign aloud, word by word; if there is none, say "none".',
)


class Sample(NamedTuple):
    """What a row says: an id, where its picture is, its question and its answer."""

    id: str
    image: str
    question: str
    answer: str


def write_jpegs(folder: str, count: int, distinct: int = DISTINCT) -> list[str]:
    """Write ``count`` JPEG files of 100 to 250 KiB and return their names; ``distinct`` of them differ in size."""
    os.makedirs(os.path.join(folder, "media"))
    photographs = [Image.open(os.path.join(PHOTOGRAPHS, f"{name}.jpg")).convert("RGB") for name in NAMES]
    draw = np.random.default_rng(7)
    sizes = np.linspace(SMALLEST + 2000, LARGEST - 2000, distinct).astype(int)
    pictures = [_jpeg_of(photographs[i % len(NAMES)], int(size), draw) for i, size in enumerate(sizes)]
    names = [f"media/{number:05}.jpg" for number in range(count)]
    for number, name in enumerate(names):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(pictures[number * 7919 % distinct])
    return names


def _jpeg_of(photograph: Image.Image, size: int, draw: np.random.Generator) -> bytes:
    """Return the photograph as a JPEG of about ``size`` bytes, enlarged, with noise like a camera's."""
    quality = int(draw.integers(85, 93))
    scale = 1.5
    for _ in range(6):
        width, height = (round(side * scale) for side in photograph.size)
        pixels = np.asarray(photograph.resize((width, height), Image.Resampling.BICUBIC), dtype=np.int16)
        noisy = np.clip(pixels + draw.normal(0, 5, pixels.shape), 0, 255).astype(np.uint8)
        buffer = io.BytesIO()
        Image.fromarray(noisy).save(buffer, "JPEG", quality=quality)
        if SMALLEST <= buffer.tell() <= LARGEST and abs(buffer.tell() - size) < size / 20:
            break
        scale *= (size / buffer.tell()) ** 0.5
    return buffer.getvalue()


def samples(images: list[str], count: int) -> list[Sample]:
    """Return ``count`` samples with these images in turn."""
    return [
        Sample(f"q-{number}", images[number % len(images)], _QUESTIONS[number % len(_QUESTIONS)], str(number % 7))
        for number in range(count)
    ]


def urls(count: int) -> list[str]:
    """Return that many addresses of pictures that do not exist."""
    return [f"https://images.example.com/set-{number % 17}/{number:08}.jpg" for number in range(count)]


def write_rows(path: str, rows: list[Sample]) -> str:
    """Write samples as AIS JSONL and return the path."""
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            content = f"<AIS_IMAGE_START>{row.image}<AIS_CONTENT_TAG><AIS_TEXT_START>{row.question}<AIS_CONTENT_TAG>"
            line = {"id": row.id, "content": content, "answer": row.answer}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return path


def write_columns(path: str, rows: list[Sample]) -> str:
    """Write samples as JSON lines without tags and return the path."""
    with open(path, "w", encoding="utf-8") as file:
        file.writelines([json.dumps(row._asdict(), ensure_ascii=False) + "\n" for row in rows])
    return path
