"""Each bait costs its own row at most: the run names the row, renders the next one, and leaves no process behind."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

import baits
import pytest
from clips import clip
from image_files import saved
from PIL import Image
from sound_files import tone, written

from mmprompt.cli import main

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot limit processes")

ASKED = {
    "image": {"max_side": 4},
    "audio": {"audio_rate": 8000, "audio_format": "wav"},
    "video": {"frames": 1},
}
MORE = ("--read-also", "tiff", "--read-also", "avif")
COSTLY = [
    pytest.param(modality, [name], id=name, marks=pytest.mark.slow)
    for modality, some in baits.BAITS.items()
    for name in some
    if name in baits.COSTLY
]
OTHERS = [
    pytest.param(
        modality,
        [name for name in some if name not in baits.COSTLY],
        id=modality,
        marks=[] if modality == "image" else pytest.mark.slow,
    )
    for modality, some in baits.BAITS.items()
]


@functools.cache
def honest(modality: str) -> bytes:
    """Return a small file as people send it."""
    if modality == "image":
        return saved(Image.new("RGB", (8, 8), (200, 30, 30)), "PNG")
    return written(tone(16000, 440), 16000) if modality == "audio" else clip(5)


@pytest.mark.parametrize(("modality", "names"), [*OTHERS, *COSTLY])
def test_a_bait_costs_its_own_row_and_the_next_is_rendered(modality, names, tmp_path, capsys):
    rows = []
    for number, name in enumerate(names):
        (tmp_path / f"bait{number}").write_bytes(baits.BAITS[modality][name]())
        (tmp_path / f"honest{number}").write_bytes(honest(modality))
        rows += [f"bait{number}", f"honest{number}"]
    status = rendered(tmp_path, modality, rows)
    ids = [json.loads(line)["id"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    said = capsys.readouterr().err
    told = [json.loads(line) for line in (tmp_path / "errors.jsonl").read_text().splitlines()]
    refused = {row for row in rows if row.startswith("bait")} - set(ids)  # a release of the library may read some
    assert ids == [row for row in rows if row not in refused], said
    assert status == bool(refused)
    assert [error["id"] for error in told] == [row for row in rows if row in refused]
    assert [error["line"] for error in told] == [n for n, row in enumerate(rows, 1) if row in refused]


def rendered(folder: Path, modality: str, files: list[str]) -> int:
    tag = modality.upper()
    lines = [
        json.dumps({"id": file, "content": f"<AIS_{tag}_START>{file}<AIS_CONTENT_TAG>", "answer": "1"})
        for file in files
    ]
    (folder / "rows.jsonl").write_text("\n".join(lines) + "\n")
    media = {"timeout": 1.5, **ASKED[modality]}
    (folder / "task.json").write_text(json.dumps({"dataset": {"path": "rows.jsonl"}, "media": media}))
    outputs = ("-o", str(folder / "out.jsonl"), "--errors", str(folder / "errors.jsonl"))
    return main(["render", str(folder / "task.json"), *outputs, *MORE])
