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
EVERY = [
    pytest.param(modality, name, id=name, marks=[pytest.mark.slow] if name in baits.COSTLY else [])
    for modality, some in baits.BAITS.items()
    for name in some
]


@functools.cache
def honest(modality: str) -> bytes:
    """Return a small file as people send it."""
    if modality == "image":
        return saved(Image.new("RGB", (8, 8), (200, 30, 30)), "PNG")
    return written(tone(16000, 440), 16000) if modality == "audio" else clip(5)


@pytest.mark.parametrize(("modality", "name"), EVERY)
def test_a_bait_costs_its_own_row_and_the_next_is_rendered(modality, name, tmp_path, capsys):
    (tmp_path / "bait").write_bytes(baits.BAITS[modality][name]())
    (tmp_path / "honest").write_bytes(honest(modality))
    status = rendered(tmp_path, modality, ["bait", "honest"])
    ids = [json.loads(line)["id"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    said = capsys.readouterr().err
    assert ids[-1:] == ["honest"], said
    if len(ids) == 2:  # this release of the library reads the bait, or finds nothing in it to do
        assert (ids[0], status) == ("bait", 0)
    else:
        assert status == 1
        assert "rows.jsonl:1: MM" in said


def rendered(folder: Path, modality: str, files: list[str]) -> int:
    tag = modality.upper()
    lines = [
        json.dumps({"id": file, "content": f"<AIS_{tag}_START>{file}<AIS_CONTENT_TAG>", "answer": "1"})
        for file in files
    ]
    (folder / "rows.jsonl").write_text("\n".join(lines) + "\n")
    media = {"timeout": 1.5, **ASKED[modality]}
    (folder / "task.json").write_text(json.dumps({"dataset": {"path": "rows.jsonl"}, "media": media}))
    return main(["render", str(folder / "task.json"), "-o", str(folder / "out.jsonl"), *MORE])
