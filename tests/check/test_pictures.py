"""The rules on pictures: each finds its fault, and sound pictures give nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from check.picture_faults import FAULTS, GOOD, jpeg, letters_on_nothing, scene
from findings import findings_of
from PIL import Image

from mmprompt.errors.findings import Finding


def found_in(tmp_path: Path, files: dict[str, bytes]) -> list[Finding]:
    """Return the findings of a dataset with one row for each file, but for those on the whole of it."""
    rows = []
    for number, (name, data) in enumerate(files.items()):
        (tmp_path / name).write_bytes(data)
        rows.append({"id": number, "question": f"What is shown in number {number}?", "image": name, "answer": "it"})
    (tmp_path / "data.jsonl").write_text("".join([json.dumps(row) + "\n" for row in rows]))
    return [finding for finding in findings_of(tmp_path / "data.jsonl") if finding.code < "MM7"]


@pytest.mark.parametrize("code", FAULTS)
def test_a_fault_of_a_picture_is_found_and_named(code: str, tmp_path: Path) -> None:
    name, data = FAULTS[code]
    (finding,) = [f for f in found_in(tmp_path, {name: data}) if f.severity != "info" or f.code == code]
    assert finding.code == code
    assert finding.hint
    assert name in finding.message or code in ("MM300", "MM301", "MM302")
    assert (finding.column, finding.part) == ("image", 1)


def test_sound_pictures_give_nothing(tmp_path: Path) -> None:
    assert found_in(tmp_path, GOOD) == []


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (jpeg(Image.new("RGB", (320, 240))), "all pixels of a.jpg are black"),
        (jpeg(Image.new("RGB", (320, 240), (250, 128, 20))), "all pixels of a.jpg are #f"),
        (letters_on_nothing(), "are black once its transparency is taken away"),
    ],
)
def test_a_picture_of_one_colour_is_named_with_its_colour(data: bytes, words: str, tmp_path: Path) -> None:
    assert words in " ".join(f.message for f in found_in(tmp_path, {"a.jpg": data}) if f.code == "MM307")


def test_fine_lines_are_not_taken_for_one_colour(tmp_path: Path) -> None:
    lines = Image.new("L", (512, 512), 255)
    lines.paste(0, (0, 0, 512, 1))
    board = Image.new("1", (2, 2))
    board.putpixel((0, 0), 1)
    board.putpixel((1, 1), 1)
    wide = Image.new("1", (512, 512))
    for x in range(0, 512, 2):
        for y in range(0, 512, 2):
            wide.paste(board, (x, y))
    files = {"lines.jpg": jpeg(lines), "board.jpg": jpeg(wide.convert("L"), quality=95)}
    assert "MM307" not in {f.code for f in found_in(tmp_path, files)}


@pytest.mark.parametrize("after", [b"\0" * 500, b"\xff\xd9", b"SEFT"])
def test_padding_behind_a_picture_is_no_fault(after: bytes, tmp_path: Path) -> None:
    assert found_in(tmp_path, {"a.jpg": jpeg(scene(1)) + after}) == []


def test_a_picture_and_what_follows_it_are_told_apart(tmp_path: Path) -> None:
    (finding,) = found_in(tmp_path, {"a.jpg": jpeg(scene(1)) + b"PK" * 300})
    assert finding.code == "MM311"
    assert "a.jpg has 600 bytes after" in finding.message
