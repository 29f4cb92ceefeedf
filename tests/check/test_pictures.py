"""The rules on pictures: each finds its fault, and sound pictures give nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from check.picture_faults import FAULTS, good, jpeg, letters_on_nothing, scene
from findings import findings_of
from media.image_files import saved
from PIL import Image, ImageDraw

from mmprompt.check.checker import Keeps
from mmprompt.errors.findings import Finding


def found_in(tmp_path: Path, files: dict[str, bytes], keeps: Keeps | None = None) -> list[Finding]:
    """Return the findings of a dataset with one row for each file, but for those on the whole of it."""
    rows = []
    for number, (name, data) in enumerate(files.items()):
        (tmp_path / name).write_bytes(data)
        rows.append({"id": number, "question": f"What is shown in number {number}?", "image": name, "answer": "it"})
    (tmp_path / "data.jsonl").write_text("".join([json.dumps(row) + "\n" for row in rows]))
    return [finding for finding in findings_of(tmp_path / "data.jsonl", keeps=keeps) if "MM3" < finding.code < "MM4"]


@pytest.mark.parametrize("code", FAULTS)
def test_a_fault_of_a_picture_is_found_and_named(code: str, tmp_path: Path) -> None:
    name, make = FAULTS[code]
    (finding,) = [f for f in found_in(tmp_path, {name: make()}) if f.severity != "info" or f.code == code]
    assert finding.code == code
    assert finding.hint
    assert name in finding.message or code in ("MM300", "MM301", "MM302")
    assert (finding.column, finding.part) == ("image", 1)


def wall(width: int, height: int) -> Image.Image:
    """Return a picture of any size: as much of one scene, side by side, as it holds."""
    tile = scene(1)
    whole = Image.new("RGB", (width, height))
    for x in range(0, width, tile.width):
        for y in range(0, height, tile.height):
            whole.paste(tile, (x, y))
    return whole


def test_sound_pictures_give_nothing(tmp_path: Path) -> None:
    assert found_in(tmp_path, good()) == []


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (jpeg(Image.new("RGB", (320, 240))), "all pixels of a.jpg are black"),
        (jpeg(Image.new("RGB", (320, 240), (250, 128, 20))), "all pixels of a.jpg have one colour"),
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


def test_pages_of_text_are_neither_light_nor_low_on_information(tmp_path: Path) -> None:
    page = Image.new("L", (600, 800), 255)
    draw = ImageDraw.Draw(page)
    for line in range(6):
        draw.text((40, 40 + 30 * line), "In the beginning was the word, and it was small.", fill=0)
    found = found_in(tmp_path, {"page.png": saved(page.convert("RGB"), "PNG"), "page.jpg": jpeg(page)})
    assert {f.code for f in found} == {"MM318"}


@pytest.mark.parametrize(("size", "found"), [((16, 16), True), ((3000, 2400), True), ((640, 480), False)])
def test_a_size_that_stands_out_is_found(size: tuple[int, int], found: bool, tmp_path: Path) -> None:
    files = {f"{number}.jpg": jpeg(wall(300 + number, 240)) for number in range(60)}
    findings = found_in(tmp_path, {**files, "odd.jpg": jpeg(wall(*size))})
    assert [(f.code, f.line, f.column) for f in findings] == [("MM317", 61, "image")] * found


def test_a_tiny_or_extreme_picture_has_no_odd_size_even_if_its_own_finding_is_known(tmp_path: Path) -> None:
    files = {f"{number}.jpg": jpeg(wall(300 + number, 240)) for number in range(60)}
    files |= {"tiny.jpg": jpeg(wall(3, 3)), "strip.png": saved(wall(1, 20000), "PNG")}
    found = found_in(tmp_path, files, keeps=lambda finding: finding.code not in ("MM307", "MM308", "MM309"))
    assert [f.code for f in found] == []


def test_sizes_of_a_mixed_dataset_do_not_stand_out(tmp_path: Path) -> None:
    files = {f"{n}.jpg": jpeg(wall(16 + 12 * n, 16 + 10 * n)) for n in range(60)}
    assert "MM317" not in {f.code for f in found_in(tmp_path, files)}
