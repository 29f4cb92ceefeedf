"""The rules on media that come again: the same bytes under two names, and pictures that look the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from check.picture_faults import jpeg, png_of, scene
from findings import findings_of
from PIL import Image, ImageDraw, ImageEnhance, ImageFont

from mmprompt.check.rules.similar_media import DISTANCE, similar_media
from mmprompt.check.store import MediumFacts, SampleFacts, Store
from mmprompt.media.image.headers import orientation_exif

WARMER = [[min(255, round(level * times)) for level in range(256)] for times in (1.1, 1, 0.9)]


def found_in(tmp_path: Path, rows: list[dict[str, object]], files: dict[str, bytes]) -> list[tuple[str, str, int]]:
    """Return code, message and line of the findings of MM708 and MM709."""
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    lines = [
        {"id": number, "question": f"What is in number {number}?", "answer": "it", **row}
        for number, row in enumerate(rows)
    ]
    (tmp_path / "data.jsonl").write_text("".join([json.dumps(line) + "\n" for line in lines]))
    found = findings_of(tmp_path / "data.jsonl")
    return [(f.code, f.message, f.line or 0) for f in found if f.code in ("MM708", "MM709")]


def test_the_same_bytes_under_two_names_are_found_once(tmp_path: Path) -> None:
    files = {"a.jpg": jpeg(scene(1)), "b.jpg": jpeg(scene(2)), "c.jpg": jpeg(scene(1))}
    rows: list[dict[str, object]] = [{"image": name} for name in ("a.jpg", "b.jpg", "c.jpg", "c.jpg", "a.jpg")]
    assert found_in(tmp_path, rows, files) == [("MM708", "c.jpg has the same bytes as a.jpg in line 1", 3)]


def test_one_picture_of_many_questions_gives_nothing(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"image": "a.jpg"}] * 4
    assert found_in(tmp_path, rows, {"a.jpg": jpeg(scene(1))}) == []


def test_pictures_of_one_row_are_told_only_if_their_bytes_are_the_same(tmp_path: Path) -> None:
    files = {"a.jpg": jpeg(scene(1)), "b.jpg": jpeg(scene(1)), "c.jpg": jpeg(scene(1), quality=60)}
    assert found_in(tmp_path, [{"image": list(files)}], files) == [
        ("MM708", "b.jpg has the same bytes as a.jpg in the same row", 1)
    ]


def test_a_picture_that_looks_like_one_of_its_row_and_one_of_another_is_told(tmp_path: Path) -> None:
    files = {f"{name}.jpg": jpeg(scene(1), quality=quality) for name, quality in (("a", 90), ("b", 80), ("c", 70))}
    rows: list[dict[str, object]] = [{"image": "a.jpg"}, {"image": ["b.jpg", "c.jpg"]}]
    found = found_in(tmp_path, rows, files)
    assert [(code, message.split(" (")[0], line) for code, message, line in found] == [
        ("MM709", f"{name}.jpg looks like a.jpg in line 1", 2) for name in "bc"
    ]


def test_small_digits_are_no_copies_and_small_copies_are_found(tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    files = {}
    for number in range(40):
        image = Image.new("L", (112, 112))
        place = tuple(draw.integers(28, 40, 2).tolist())
        ImageDraw.Draw(image).text(place, str(number % 10), fill=255, font=ImageFont.load_default(72))
        files[f"{number}.png"] = png_of(image.rotate(draw.uniform(-9, 9)).resize((28, 28)))
    for number in range(20):
        files[f"photo{number}.png"] = png_of(scene(number, 48, 48))
        files[f"again{number}.jpg"] = jpeg(scene(number, 48, 48), quality=85)
    found = found_in(tmp_path, [{"image": name} for name in files], files)
    assert [message.split(" (")[0].split(" in ")[0] for _, message, _ in found] == [
        f"again{number}.jpg looks like photo{number}.png" for number in range(20)
    ]


def test_a_picture_saved_anew_scaled_cropped_or_with_other_light_or_tint_is_found(tmp_path: Path) -> None:
    first = scene(1)
    changed = {
        "saved.jpg": jpeg(first, quality=40),
        "half.jpg": jpeg(first.resize((160, 120))),
        "cropped.jpg": jpeg(first.crop((4, 3, 316, 237))),
        "lighter.jpg": jpeg(ImageEnhance.Brightness(first).enhance(1.2)),
        "grey.jpg": jpeg(first.convert("L")),
        "warmer.jpg": jpeg(
            Image.merge("RGB", [band.point(table) for band, table in zip(first.split(), WARMER, strict=True)])
        ),
        "turned.jpg": jpeg(first.transpose(Image.Transpose.ROTATE_90), exif=orientation_exif(6)),
        "clear.png": png_of(first.convert("RGBA")),
        "paler.jpg": jpeg(ImageEnhance.Color(first).enhance(0.5)),
    }
    files = {"a.jpg": jpeg(first), **{f"{n}.jpg": jpeg(scene(n)) for n in range(2, 12)}, **changed}
    found = found_in(tmp_path, [{"image": name} for name in files], files)
    assert [(code, message.split(" looks like ")[0]) for code, message, _ in found] == [
        ("MM709", name) for name in changed
    ]


def on_shade(draw: Callable[[ImageDraw.ImageDraw], None]) -> bytes:
    """Return a picture with something drawn on a ground that gets lighter to the right."""
    image = Image.linear_gradient("L").rotate(90).resize((320, 240)).point(lambda level: 130 + level // 3)
    coloured = image.convert("RGB")
    draw(ImageDraw.Draw(coloured))
    return jpeg(coloured)


def test_one_drawing_in_other_colours_of_equal_grey_gives_nothing(tmp_path: Path) -> None:
    def disc(colour: str) -> bytes:
        return on_shade(lambda draw: draw.ellipse((90, 60, 210, 180), fill=colour))

    def bars(*colours: str) -> bytes:
        def draw(on: ImageDraw.ImageDraw) -> None:
            for number, colour in enumerate(colours):
                on.rectangle((30 + 70 * number, 40 + 31 * number % 90, 70 + 70 * number, 220), fill=colour)

        return on_shade(draw)

    red, green, blue = "#c81e1e", "#008228", "#2864c8"
    greys = {Image.new("RGB", (1, 1), colour).convert("L").getpixel((0, 0)) for colour in (red, green)}
    assert max(greys) - min(greys) <= 1
    files = {
        "red.jpg": disc(red),
        "green.jpg": disc(green),
        "bars.jpg": bars(red, red, red, red),
        "blue_bars.jpg": bars(blue, blue, blue, blue),
        "one_bar.jpg": bars(red, green, red, red),
    }
    assert found_in(tmp_path, [{"image": name} for name in files], files) == []
    files = {"a.jpg": disc(red), "b.jpg": disc("#c81e32"), "c.jpg": disc("#515151")}
    found = found_in(tmp_path, [{"image": name} for name in files], files)
    assert [message.split(" (")[0] for _, message, _ in found] == [
        "b.jpg looks like a.jpg in line 1",
        "c.jpg looks like a.jpg in line 1",
    ]


def test_flat_pictures_are_left_out(tmp_path: Path) -> None:
    def page(number: int) -> bytes:
        image = Image.new("L", (400, 300), 255)
        image.paste(0, (40, 100 + 4 * number, 60, 102 + 4 * number))
        return jpeg(image)

    files = {f"{number}.jpg": page(number) for number in range(5)}
    assert found_in(tmp_path, [{"image": name} for name in files], files) == []


def hashed(store: Store, cells: np.ndarray) -> None:
    for row, levels in enumerate(cells):
        sample = SampleFacts(row, "a.jsonl", row + 1, str(row))
        name = f"{row}.jpg"
        place = row, 1, "image", name, "image", None, b"%d" % row
        colours = Image.fromarray(levels).convert("YCbCr").tobytes()
        store.add([], sample, [MediumFacts(*place, colours, 1, width=320, height=240)])


def test_of_many_pictures_the_nearest_earlier_one_is_named() -> None:
    draw = np.random.default_rng(3)
    cells = draw.integers(0, 256, (3000, 8, 9), dtype=np.uint8)
    twins = range(2000, 3000, 10)
    for row in twins:
        cells[row] = np.clip(cells[row - 1500].astype(int) + draw.integers(-4, 5, (8, 9)), 0, 255)
    with Store() as store:
        hashed(store, cells)
        found = [(hit.row, hit.message.split(" (")[0]) for hit in similar_media(store)]
    bits = np.diff(cells.astype(int), axis=2).reshape(3000, 64) > 0
    near = [row for row in twins if (bits[row] != bits[row - 1500]).sum() <= DISTANCE]
    assert len(near) > 90
    assert found == [(row, f"{row}.jpg looks like {row - 1500}.jpg in line {row - 1499}") for row in near]


def test_the_same_file_under_a_url_and_a_path_gives_nothing(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"image": name} for name in ("a b.jpg", "file://a%20b.jpg", "./a b.jpg")]
    assert found_in(tmp_path, rows, {"a b.jpg": jpeg(scene(1))}) == []


def test_a_thing_that_moves_on_a_smooth_ground_gives_nothing(tmp_path: Path) -> None:
    files = {}
    for number in range(8):
        image = Image.radial_gradient("L").resize((400, 300)).convert("RGB")
        ImageDraw.Draw(image).ellipse((100 + 3 * number, 80, 200 + 3 * number, 180), fill="red")
        files[f"{number}.jpg"] = jpeg(image)
    assert found_in(tmp_path, [{"image": name} for name in files], files) == []


def test_all_pictures_of_one_hash_are_compared() -> None:
    draw = np.random.default_rng(5)
    one = np.sort(draw.integers(0, 256, (8, 9)), axis=1)
    other = np.sort(draw.integers(0, 256, (8, 9)), axis=1)
    one, other = one // 4 + np.arange(9) * 5, other // 8 + np.arange(9) * 5 + np.arange(8)[:, None] * 18
    copy = other + draw.integers(0, 2, (8, 1))
    with Store() as store:
        hashed(store, np.stack([one, other, copy]).astype(np.uint8))
        found = [(hit.row, hit.message.split(" (")[0]) for hit in similar_media(store)]
    assert found == [(2, "2.jpg looks like 1.jpg in line 2")]


def slices(count: int, others: int = 0) -> dict[str, bytes]:
    """Return pictures that look like each other, as the slices of a scan do, and ``others`` that do not."""
    files = {f"{number:02}.jpg": jpeg(scene(1), quality=90 - number) for number in range(count)}
    return files | {f"other{number:02}.jpg": jpeg(scene(2 + number)) for number in range(others)}


def test_a_dataset_of_pictures_that_look_alike_is_told_once(tmp_path: Path) -> None:
    files = slices(21, 15)
    rows: list[dict[str, object]] = [{"image": name} for name in files]
    for number in range(2):  # a second question on each picture changes nothing
        [(code, message, line)] = found_in(tmp_path, rows * (1 + number), files)
        assert (code, line) == ("MM709", 0)
        assert message.startswith("20 of 36 different pictures look like an earlier one: 01.jpg looks like 00.jpg")
        assert "data.jsonl:1 (distance " in message


def test_similar_pictures_that_are_few_or_the_lesser_part_are_told_each(tmp_path: Path) -> None:
    for each in (slices(20), slices(21, 19)):
        found = found_in(tmp_path, [{"image": name} for name in each], each)
        told = len([name for name in each if "other" not in name]) - 1
        assert [line for _, _, line in found] == list(range(2, 2 + told))


def test_of_far_hashes_those_of_nearly_the_same_grey_levels_are_told() -> None:
    draw = np.random.default_rng(4)
    first = draw.integers(20, 236, (300, 8, 9))
    second = np.clip(first + draw.normal(0, 1, first.shape) * draw.uniform(2, 14, (300, 1, 1)), 0, 255).astype(int)
    with Store() as store:
        hashed(store, np.concatenate([first, second]).astype(np.uint8))
        told = {(hit.row or 0) - 300 for hit in similar_media(store)}
    bits = [np.diff(cells, axis=2).reshape(300, 64) > 0 for cells in (first, second)]
    distances = (bits[0] != bits[1]).sum(axis=1).tolist()
    alike = [float(np.corrcoef(one.ravel(), other.ravel())[0, 1]) for one, other in zip(first, second, strict=True)]
    far = [pair for pair in range(300) if distances[pair] in (5, 6)]
    differ = {pair for pair in far if 0.972 < alike[pair] < 0.988}
    assert len(differ) > 5
    assert told.isdisjoint(differ)
    nearly = {pair for pair in far if alike[pair] > 0.992}
    near = {pair for pair in range(300) if distances[pair] < 5 and alike[pair] > 0.972}
    assert min(map(len, (nearly, near))) > 5
    assert nearly | near <= told
