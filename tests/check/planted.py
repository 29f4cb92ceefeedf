"""Good rows on the spot, for planting faults: pictures, sounds and clips that differ, in four formats."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from clips import clip
from media.sound_files import tone, written
from PIL import Image

Columns = dict[str, object]

FORMATS = ("ais", "csv", "tsv", "parquet")
CHOICES = ("a circle", "a square", "a star", "a cross")


def pixels(number: int, width: int = 96, height: int = 72) -> np.ndarray:
    """Return a picture of coloured fields with some noise; each number gives another one."""
    random = np.random.default_rng(number)
    fields = random.integers(30, 226, (6, 8, 3))
    whole = np.kron(fields, np.ones((height // 6, width // 8, 1)))
    return np.clip(whole + random.normal(0, 6, whole.shape), 0, 255).astype(np.uint8)


def encoded(picture: np.ndarray, kind: str = "JPEG", **options: object) -> bytes:
    """Return a picture as the bytes of a file."""
    stream = io.BytesIO()
    Image.fromarray(picture).save(stream, kind, **options)
    return stream.getvalue()


def write_pictures(folder: Path, count: int) -> None:
    """Write ``p000.jpg`` and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"p{number:03}.jpg").write_bytes(encoded(pixels(number), quality=92))


def write_sounds(folder: Path, count: int) -> None:
    """Write ``s000.wav`` and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"s{number:03}.wav").write_bytes(written(tone(16000, 200 + 5 * number, 0.5) * 0.5, 16000))


def write_clips(folder: Path, count: int) -> None:
    """Write ``v000.mp4`` and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"v{number:03}.mp4").write_bytes(clip(30 + number))


def good_row(number: int, medium: str, modality: str = "image") -> Columns:
    """Return a row of a multiple-choice dataset."""
    return {
        "id": f"q-{number:03}",
        "question": f"Which shape does number {number} show in its corner?",
        modality: medium,
        **dict(zip("ABCD", CHOICES, strict=True)),
        "answer": "ABCD"[number % 4],
    }


def as_ais(row: Mapping[str, object], modality: str = "image") -> Columns:
    """Return a row as tagged text; its choices are not among its columns."""
    content = row.get("content")
    if content is None:
        medium = f"<AIS_{modality.upper()}_START>{row[modality]}<AIS_CONTENT_TAG>"
        content = f"{medium}<AIS_TEXT_START>{row['question']}<AIS_CONTENT_TAG>"
    return {"id": row["id"], "content": content, "answer": row["answer"]}


def write_rows(path: Path, rows: Sequence[Mapping[str, object]], kind: str, modality: str = "image") -> Path:
    """Write rows in one of ``FORMATS`` and return the file."""
    file = path.with_suffix(".jsonl" if kind == "ais" else f".{kind}")
    if kind == "ais":
        lines = [json.dumps(as_ais(row, modality), ensure_ascii=False) for row in rows]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif kind == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), file)
    else:
        stream = io.StringIO(newline="")
        writer = csv.DictWriter(stream, list(rows[0]), delimiter="," if kind == "csv" else "\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        file.write_text(stream.getvalue(), encoding="utf-8", newline="")
    return file
