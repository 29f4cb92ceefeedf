"""Faults planted among 300 good rows, in every format where each can occur: each is found at its row, and nothing else.

A fault of a whole file (its encoding, a byte order mark, the training set) stands in a file of its own.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from findings import findings_of, overlap_of
from media.image_files import flat_png
from PIL import Image
from planted import Columns, encoded, good_row, pixels, write_clips, write_pictures, write_rows, write_sounds

from mmprompt.errors.findings import Finding

ROWS = 300
FEW = 60  # where each row is like the next
CLIPS = 24
TABLES = ("csv", "tsv", "parquet")
EVERY = ("ais", *TABLES)


class Fault(NamedTuple):
    """A fault: the code that names it, the row where it is planted, where it can occur, and how to plant it.

    ``plant`` changes the rows, and may write files into the folder of the media.
    """

    code: str
    row: int
    plant: Callable[[list[Columns], int, Path], None]
    formats: tuple[str, ...] = EVERY
    codes: tuple[str, ...] = ()
    """The code in each of the formats, where it is not ``code`` in all."""


def stored(name: str, data: Callable[[], bytes]) -> Callable[[list[Columns], int, Path], None]:
    """Plant a picture of a good row's name with other bytes."""

    def plant(rows: list[Columns], at: int, folder: Path) -> None:
        (folder / name).write_bytes(data())
        rows[at]["image"] = f"{folder.name}/{name}"

    return plant


def value(column: str, text: object) -> Callable[[list[Columns], int, Path], None]:
    """Plant a value in a column."""

    def plant(rows: list[Columns], at: int, _folder: Path) -> None:
        rows[at][column] = text

    return plant


def same_id(rows: list[Columns], at: int, _folder: Path) -> None:
    rows[at]["id"] = rows[at - 1]["id"]


def swapped(rows: list[Columns], at: int, _folder: Path) -> None:
    rows[at]["question"], rows[at]["image"] = rows[at]["image"], "Look at picture number 70 and name its shape"


def other_answer(rows: list[Columns], at: int, _folder: Path) -> None:
    rows[at] |= {"image": rows[at - 1]["image"], "question": rows[at - 1]["question"]}


def tagged(pattern: str) -> Callable[[list[Columns], int, Path], None]:
    """Plant tagged text; in tables it is the question, whose tags are not read."""

    def plant(rows: list[Columns], at: int, _folder: Path) -> None:
        row = rows[at]
        text = pattern.format(image=row["image"], question=row["question"])
        row |= {"content": text, "question": text}

    return plant


def truncated() -> bytes:
    data = encoded(pixels(900), quality=92)
    return data[: len(data) * 6 // 10]


def near_copy() -> bytes:
    picture = Image.fromarray(pixels(40))
    stream = io.BytesIO()
    picture.resize((90, 68)).resize((96, 72)).save(stream, "JPEG", quality=55)
    return stream.getvalue()


def black() -> bytes:
    return encoded(np.zeros((72, 96, 3), np.uint8))


def line_of_pixels() -> bytes:
    return encoded(np.kron(pixels(901, 8, 6), np.ones((4000, 1, 1), np.uint8))[:20000, :1], "PNG")


FAULTS = {
    "missing picture": Fault("MM201", 10, value("image", "pictures/nowhere.jpg")),
    "PNG named .jpg": Fault("MM204", 20, stored("png.jpg", lambda: encoded(pixels(902), "PNG"))),
    "truncated JPEG": Fault("MM301", 30, stored("cut.jpg", truncated)),
    "near-duplicate picture": Fault("MM709", 42, stored("near.jpg", near_copy)),
    "repeated id": Fault("MM009", 50, same_id),
    "answer not among the choices": Fault("MM702", 60, value("answer", "a hexagon"), TABLES),
    "swapped columns": Fault("MM706", 70, swapped),
    "empty question": Fault("MM700", 80, value("question", "")),
    "<AIS_IMG_START>": Fault(
        "MM102",
        90,
        tagged("<AIS_IMG_START>{image}<AIS_CONTENT_TAG><AIS_TEXT_START>{question}<AIS_CONTENT_TAG>"),
        codes=("MM102", "MM105", "MM105", "MM105"),
    ),
    "<ais_image_start>": Fault(
        "MM102",
        100,
        tagged("<ais_image_start>{image}<ais_content_tag><ais_text_start>{question}<ais_content_tag>"),
        codes=("MM102", "MM105", "MM105", "MM105"),
    ),
    "unclosed last tag": Fault(
        "MM104", 110, tagged("<AIS_IMAGE_START>{image}<AIS_CONTENT_TAG><AIS_TEXT_START>{question}"), ("ais",)
    ),
    "picture of 1 x 20000": Fault("MM309", 120, stored("line.png", line_of_pixels)),
    "picture of 1 x 1": Fault("MM308", 130, stored("dot.png", lambda: encoded(pixels(903)[:1, :1], "PNG"))),
    "HTML saved as .jpg": Fault(
        "MM205", 140, stored("page.jpg", lambda: b"<!DOCTYPE html><html><body>404 Not Found</body></html>")
    ),
    "answer null": Fault("MM701", 150, value("answer", None)),
    "other answer to the same": Fault("MM710", 161, other_answer),
    "black picture": Fault("MM307", 170, stored("black.jpg", black)),
    "PNG bomb": Fault("MM302", 180, stored("bomb.png", lambda: flat_png(30_000, 30_000))),
    "<image> in a question": Fault("MM107", 190, value("question", "<image>\nWhich shape is in the corner?")),
    "mojibake": Fault("MM005", 200, value("question", "Which shape does the cafÃ©â€™s sign show?")),
}
"""The faults of single rows. The code of a table's tags is that of tags in text: they are not read there."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a picture for each row."""
    made = tmp_path_factory.mktemp("planted")
    write_pictures(made / "pictures", ROWS)
    return made


def planted(folder: Path, kind: str) -> tuple[Path, dict[str, Fault]]:
    """Return a dataset with all faults that can occur in its format."""
    rows = [good_row(number, f"pictures/p{number:03}.jpg") for number in range(ROWS)]
    faults = {name: fault for name, fault in FAULTS.items() if kind in fault.formats}
    for fault in faults.values():
        fault.plant(rows, fault.row, folder / "pictures")
    if kind in TABLES:
        rows = [{name: row[name] for name in row if name != "content"} for row in rows]
    return write_rows(folder / "data", rows, kind), faults


def told(findings: list[Finding]) -> list[tuple[int | None, str]]:
    """Return row and code of the errors and warnings."""
    return sorted({(f.row, f.code) for f in findings if f.severity != "info"}, key=str)


@pytest.mark.parametrize("kind", EVERY)
def test_each_fault_is_found_at_its_row_and_nothing_is_found_in_good_rows(folder: Path, kind: str) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    path, faults = planted(folder, kind)
    expected = [
        (fault.row, fault.codes[fault.formats.index(kind)] if fault.codes else fault.code) for fault in faults.values()
    ]
    assert told(findings_of(path)) == sorted(expected, key=str)


def whole(folder: Path, kind: str, change: Callable[[list[Columns]], None] = lambda rows: None) -> Path:
    """Return a dataset of good rows, after a change of all of them."""
    rows = [good_row(number, f"pictures/p{number:03}.jpg") for number in range(FEW)]
    change(rows)
    return write_rows(folder / "whole", rows, kind)


def in_chinese(rows: list[Columns]) -> None:
    for number, row in enumerate(rows):
        row["question"] = f"图中第{number}个角落里是什么形状？"


@pytest.mark.parametrize("kind", ["ais", "csv", "tsv"])
def test_a_file_in_gbk_is_one_finding_that_names_the_option(folder: Path, kind: str) -> None:
    path = whole(folder, kind, in_chinese)
    path.write_bytes(path.read_text(encoding="utf-8").encode("gbk"))
    (finding,) = findings_of(path)
    assert (finding.code, finding.row) == ("MM003", 0)
    assert f"and {FEW - 1} more rows" in finding.message
    assert "--encoding gb18030" in finding.hint


@pytest.mark.parametrize("kind", ["ais", "csv", "tsv"])
def test_a_byte_order_mark_is_found(folder: Path, kind: str) -> None:
    path = whole(folder, kind)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert [(f.code, f.line) for f in findings_of(path)] == [("MM004", 1)]


@pytest.mark.parametrize("kind", EVERY)
def test_rows_of_the_training_set_are_found(folder: Path, kind: str) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    path = whole(folder, kind)
    rows = [good_row(number, f"pictures/p{number:03}.jpg") for number in (7, 8, 9)]
    train = write_rows(folder / "train", [{**row, "id": f"t-{row['id']}"} for row in rows], kind)
    found = overlap_of(path, train)
    assert told(found) == [(7, "MM711"), (8, "MM711"), (9, "MM711")]
    first = {"parquet": ", row 0", "ais": ":1"}.get(kind, ":2")
    assert found[0].message == f"the row stands in {train}{first} too"


@pytest.mark.parametrize("kind", ["ais", *(pytest.param(kind, marks=pytest.mark.slow) for kind in TABLES)])
@pytest.mark.parametrize(
    ("modality", "write", "name", "count", "spoil", "code"),
    [
        ("audio", write_sounds, "s{:03}.wav", FEW, lambda data: data[:12] + bytes(32) + data[44:], "MM400"),
        ("video", write_clips, "v{:03}.mp4", CLIPS, lambda _: b"", "MM202"),
    ],
    ids=["corrupt WAV", "empty MP4"],
)
def test_a_damaged_sound_or_video_is_found(  # the columns of a table
    folder: Path,
    kind: str,
    modality: str,
    write: Callable[[Path, int], None],
    name: str,
    count: int,
    spoil: Callable[[bytes], bytes],
    code: str,
) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    if not (folder / modality).is_dir():
        write(folder / modality, count)
        bad = folder / modality / name.format(11)
        bad.write_bytes(spoil(bad.read_bytes()))
    rows = [good_row(number, f"{modality}/{name.format(number)}", modality) for number in range(count)]
    assert told(findings_of(write_rows(folder / f"of_{modality}", rows, kind, modality))) == [(11, code)]
