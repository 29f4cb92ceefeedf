"""How often the media of a row are read, whether its form or the walk makes its requests."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from form_rows import template
from PIL import Image

from mmprompt import render_file
from mmprompt.media.reader import MediaReader
from mmprompt.messages import MediaPart
from mmprompt.render.builder import FailedRow, PreparedRow, RequestBuilder
from mmprompt.render.forms import NOT_YET
from mmprompt.targets import part_writer
from mmprompt.tasks.load import dataset_task, load_task

ROWS = 12
GIF = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"


class Loud(str):
    """Another text than it holds, so that no form has it."""

    __slots__ = ()

    def __str__(self) -> str:
        return self.upper()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The sources that were read, in order."""
    read, sources = MediaReader.read, list[object]()

    def counted(reader: MediaReader, ref: Any) -> Any:
        sources.append(ref.source)
        return read(reader, ref)

    monkeypatch.setattr(MediaReader, "read", counted)
    return sources


def png(number: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), (number, 0, 0)).save(file, "PNG")
    return file.getvalue()


def pictures(folder: Path, count: int = ROWS) -> list[str]:
    for number in range(count):
        (folder / f"{number}.png").write_bytes(png(number))
    return [f"{number}.png" for number in range(count)]


def prepared(rows: list[dict[str, Any]], folder: Path, **config: Any) -> list[Any]:
    task = load_task({"dataset": {"rows": rows}, "media": {"roots": [str(folder)]}, **config})
    builder = RequestBuilder(task)
    return [builder.prepare(row) for row in task.samples()]


def test_a_walked_row_reads_its_files_once(tmp_path: Path, reads: list[object]) -> None:
    rows = [{"id": n, "image": name, "question": Loud("what?")} for n, name in enumerate(pictures(tmp_path))]
    assert all(isinstance(made, PreparedRow) for made in prepared(rows, tmp_path))
    assert len(reads) == ROWS


def test_a_stream_of_a_row_is_read_once(tmp_path: Path, reads: list[object]) -> None:
    rows = [{"id": n, "image": io.BytesIO(png(n)), "question": "what?"} for n in range(ROWS)]
    made = prepared(rows, tmp_path)
    assert [one.error for one in made if isinstance(one, FailedRow)] == []
    assert len(reads) == ROWS


def test_a_row_with_a_form_reads_its_file_once_and_the_first_one_twice(tmp_path: Path, reads: list[object]) -> None:
    rows = [{"id": n, "image": name, "question": "what?"} for n, name in enumerate(pictures(tmp_path))]
    prepared(rows, tmp_path)
    assert len(reads) == ROWS + 1


def test_rows_of_another_media_type_are_read_again_but_not_their_neighbours(
    tmp_path: Path, reads: list[object]
) -> None:
    names = pictures(tmp_path, 30)
    (tmp_path / "5.png").write_bytes(GIF)
    lines = [json.dumps({"id": n, "image": name, "question": "what?"}) for n, name in enumerate(names)]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    render_file(dataset_task(str(tmp_path / "rows.jsonl")), str(tmp_path / "out"))
    assert sorted(set(map(reads.count, names))) == [1, 2, 3]
    assert [name for name in names if reads.count(name) > 2] == ["5.png"]  # asked, traced, and asked again
    assert [name for name in names if reads.count(name) == 2] == ["0.png"]  # traced, and asked


def test_a_file_that_changes_while_its_row_is_traced_costs_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (name,) = pictures(tmp_path, 1)
    read, swapped = MediaReader.read, iter([png(1), GIF] * 5)

    def changing(reader: MediaReader, ref: Any) -> Any:
        (tmp_path / name).write_bytes(next(swapped))
        return read(reader, ref)

    monkeypatch.setattr(MediaReader, "read", changing)
    task = load_task({"dataset": {"rows": [{"id": 1, "image": name}]}, "media": {"roots": [str(tmp_path)]}})
    builder = RequestBuilder(task)
    (row,) = task.samples()
    assert builder.forms.line(row) is None  # type: ignore[arg-type]
    assert builder.forms.requests(row) not in (NOT_YET, [])  # type: ignore[arg-type]
    assert isinstance(builder.prepare(row), PreparedRow)


def test_a_picture_of_all_rows_is_encoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded, encode = [], part_writer.encode

    def counted(data: bytes) -> bytes:
        encoded.append(data)
        return encode(data)

    monkeypatch.setattr(part_writer, "encode", counted)
    (name,) = pictures(tmp_path, 1)
    parts = {
        "image": {"type": "image_url", "image_url": {"url": name}},
        "text": {"type": "text", "text": "{question}"},
    }
    infer = template("MMPromptTemplate", {"round": [{"role": "HUMAN", "prompt_mm": parts}]})
    rows = [{"id": n, "question": f"what is {n}?"} for n in range(ROWS)]
    task = load_task({"dataset": {"rows": rows}, "infer_cfg": infer, "media": {"roots": [str(tmp_path)]}})
    builder = RequestBuilder(task)
    assert all(builder.forms.line(row) is not None for row in task.samples())  # type: ignore[arg-type]
    assert len(encoded) == 1


def test_a_pickled_builder_holds_no_media_of_its_last_request(tmp_path: Path) -> None:
    names = pictures(tmp_path, 4)
    (tmp_path / names[0]).write_bytes(png(0) + bytes(1 << 20))
    task = load_task({"dataset": {"rows": [{"id": 1, "images": names}]}, "media": {"roots": [str(tmp_path)]}})
    builder = RequestBuilder(task)
    (made,) = [builder.prepare(row) for row in task.samples()]
    assert isinstance(made, PreparedRow)
    assert any(isinstance(part, MediaPart) for _, part in builder._before.values())
    assert len(pickle.dumps(builder)) < 1 << 20
