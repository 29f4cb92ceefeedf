"""Forms of rows that name files: what is read for a form is guarded, noted and refused as on a walk."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from form_rows import by_form, lines_of, template

from mmprompt import load_task
from mmprompt.datasets.sample import Sample
from mmprompt.media.base64_text import decode
from mmprompt.render.builder import FailedRow
from mmprompt.render.renderer import Renderer
from mmprompt.render.wire_request import RenderedRow

ROOT = Path(__file__).parents[2]
MEDIA = ROOT / "fixtures" / "tour" / "media"
TAGGED = "<AIS_IMAGE_START>%s<AIS_CONTENT_TAG><AIS_TEXT_START>%s<AIS_CONTENT_TAG>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a dataset's folder with files of every kind, most of them wrong in some way."""
    root = tmp_path / "root"
    (root / "media").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    jpeg = (MEDIA / "coffee.jpg").read_bytes()
    for name, data in (
        ("good.jpg", jpeg),
        ("other.jpg", (MEDIA / "chelsea.jpg").read_bytes()),
        ("cat.webp", (MEDIA / "cat.webp").read_bytes()),
        ("wrong.png", jpeg),
        ("page.jpg", b"<!doctype html><html>no picture</html>"),
        ("empty.jpg", b""),
        ("long.jpg", jpeg + bytes(100_000)),
        ("sound.jpg", b"RIFF\x24\0\0\0WAVEfmt " + bytes(28)),
    ):
        (root / "media" / name).write_bytes(data)
    (tmp_path / "outside" / "secret.jpg").write_bytes(jpeg)
    (root / "media" / "link.jpg").symlink_to(tmp_path / "outside" / "secret.jpg")
    (root / "away").symlink_to(tmp_path / "outside")
    (root / "media" / "near.jpg").symlink_to("good.jpg")
    os.mkfifo(root / "media" / "pipe.jpg")
    (root / "media" / "folder.jpg").mkdir()
    return root


ODD = (
    "media/good.jpg", "media/cat.webp", "media/wrong.png", "media/page.jpg", "media/empty.jpg", "media/long.jpg",
    "media/sound.jpg", "media/link.jpg", "away/secret.jpg", "media/near.jpg", "media/pipe.jpg", "media/folder.jpg",
    "media", "media/none.jpg", "../outside/secret.jpg", "./media/good.jpg", "media//good.jpg", "media/../media/good.jpg",
    "/etc/hostname", "/etc/host.name", "//good.jpg", "media/good.jpg ", " media/good.jpg", "file://media/good.jpg",
    "media/good.jpg?x=1", "https://a.example/good.jpg", "C:\\good.jpg", "media\\good.jpg", "x/" * 60 + "good.jpg",
    "x/" * 2500 + "good.jpg", "9j/good.jpg", "/9j/4AAQSkZJRgABAQAAAQABAAD.jpg", "data:image/jpeg;base64,/9j/", "é.jpg",
    "media/good.jpg\n", "media/good.jpg\\", 'media/"good.jpg', "media/good", "", ".", "media/.jpg",
)  # fmt: skip
"""Sources of pictures: some are there, most are refused, and each in its own way."""


def columns(sources: Iterator[str] | tuple[str, ...]) -> list[dict[str, Any]]:
    return [{"id": f"r-{n}", "content": TAGGED % (source, f"Which {n}?")} for n, source in enumerate(sources)]


def written(folder: Path, rows: list[dict[str, Any]], **config: Any) -> Any:
    file = folder / "rows.jsonl"
    file.write_text("".join([json.dumps(row) + "\n" for row in rows]))
    return load_task({"dataset": str(file), **config})


@pytest.mark.parametrize("key", ["detail", "uuid"])
def test_options_from_a_column_are_those_of_the_row_in_the_media_of_a_request(key: str, folder: Path) -> None:
    option = {"detail": {"url": "{image}", "detail": "{hint}"}, "uuid": {"url": "{image}"}}[key]
    beside = {"uuid": "{hint}"} if key == "uuid" else {}
    part = {"image": {"type": "image_url", "image_url": option, **beside}}
    infer = template("MMPromptTemplate", {"round": [{"role": "HUMAN", "prompt_mm": part}]})
    names = ("media/good.jpg", "media/other.jpg", "https://a.example/a.jpg", "https://a.example/b.jpg")
    rows = [{"id": n, "image": name, "hint": ("low", "high")[n % 2]} for n, name in enumerate(names)]
    task = written(folder, rows, infer_cfg=infer)
    assert lines_of(task, "vllm", formed=True) == lines_of(task, "vllm", formed=False)
    parts = [request["messages"][0]["content"][0] for request in pickle.loads(pickle.dumps(list(task.requests())))]
    assert [{**part, **part["image_url"]}[key] for part in parts] == ["low", "high", "low", "high"]


@pytest.mark.parametrize("mode", ["inline", "file", "keep"])
@pytest.mark.parametrize("target", ["vllm", "openai", "anthropic", "gemini", "hf"])
def test_odd_files_are_read_noted_and_refused_the_same_both_ways(folder: Path, target: str, mode: str) -> None:
    usual = ("media/good.jpg", "media/other.jpg") * 4
    task = written(folder, columns(usual + ODD), media={"mode": mode, "max_bytes": 100_000})
    one, other = [lines_of(task, target, formed=formed) for formed in (True, False)]
    assert one == other
    assert (len(one[1]) > 20, len(one[2]) >= 1) == (True, mode == "inline")


def test_a_row_whose_picture_is_a_file_is_a_line_at_once(folder: Path) -> None:
    task = written(folder, columns(("media/good.jpg", "media/cat.webp", "media/wrong.png") * 6))
    renderer = Renderer(task)
    made = [renderer.prepare(row) for row in task.samples()]
    assert [type(m) is tuple for m in made] == [True] * 18
    assert by_form(task) == 18
    assert [len(m[2]) for m in made] == [0, 0, 1] * 6


def test_two_pictures_of_a_row_are_bounded_together(folder: Path) -> None:
    pair = "<AIS_IMAGE_START>media/good.jpg<AIS_CONTENT_TAG><AIS_IMAGE_START>media/%s<AIS_CONTENT_TAG>"
    rows = [{"id": f"p-{n}", "content": pair % "cat.webp"} for n in range(8)]
    rows += [{"id": f"q-{n}", "content": pair % name} for n, name in enumerate(("good.jpg", "other.jpg", "cat.webp"))]
    task = written(folder, rows, media={"max_request_bytes": 70_000, "max_bytes": 60_000})
    one, other = [lines_of(task, "vllm", formed=formed) for formed in (True, False)]
    assert one == other
    assert len(one[1]) == 1
    assert "max_request_bytes" in one[1][0]


def test_a_folder_that_is_moved_out_of_the_root_during_a_run_is_not_read(folder: Path) -> None:
    task = written(folder, columns(("media/good.jpg",) * 20))
    renderer = Renderer(task)
    made = []
    for number, row in enumerate(task.samples()):
        if number == 12:
            (folder / "media").rename(folder.parent / "outside" / "media")
            (folder / "media").symlink_to(folder.parent / "outside" / "media")
        made.append(renderer.render(row))
    assert [type(m) is FailedRow for m in made] == [False] * 12 + [True] * 8
    assert {m.error.code for m in made if isinstance(m, FailedRow)} == {"MM206"}


def test_a_form_reads_for_many_threads(folder: Path) -> None:
    task = written(folder, columns(("media/good.jpg", "media/cat.webp", "media/page.jpg", "media/other.jpg") * 40))
    rows = [row for row in task.samples() if isinstance(row, Sample)]
    expected = [Renderer(task, formed=False).render(row) for row in rows]
    renderer = Renderer(task)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(renderer.render, rows))
    for one, other in zip(made, expected, strict=True):
        if isinstance(one, RenderedRow) and isinstance(other, RenderedRow):
            assert (b"".join(one.chunks), list(one.notes)) == (b"".join(other.chunks), list(other.notes))
        else:
            assert isinstance(one, FailedRow)
            assert isinstance(other, FailedRow)
            assert str(one.error) == str(other.error)


def test_a_file_that_changes_its_type_during_a_run_is_sent_as_what_it_is(folder: Path) -> None:
    infer = template(
        "MMPromptTemplate",
        {"round": [{"role": "HUMAN", "prompt_mm": {"image": {"type": "image_url", "image_url": "{image}"}}}]},
    )
    rows = [{"id": f"t-{n}", "image": "media/good.jpg"} for n in range(12)]
    task = written(folder, rows, infer_cfg=infer)
    renderer = Renderer(task)
    lines = []
    for number, row in enumerate(task.samples()):
        if number == 9:
            (folder / "media" / "good.jpg").write_bytes((MEDIA / "cat.webp").read_bytes())
        rendered = renderer.render(row)
        assert isinstance(rendered, RenderedRow)
        lines.append((b"".join(rendered.chunks), list(rendered.notes)))
    assert [len(notes) for _, notes in lines] == [0] * 9 + [1] * 3
    address = json.loads(lines[11][0])["messages"][0]["content"][0]["image_url"]["url"]
    head, _, payload = address.partition(",")
    assert (head, decode(payload)[0]) == ("data:image/webp;base64", (MEDIA / "cat.webp").read_bytes())


GIF = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
NAMES = (
    "media/good.jpg", "media/cat.webp", "media/wrong.png", "media/none.jpg", "file://media/good.jpg", "https://a.example/a.jpg",
    "https://a.example/b.png?c", "HTTPS://A.example/d", "https://\u00fc.example/e.jpg", "http://a.example/f.gif", "s3://g/h.jpg",
    "gs://g/h.jpg", f"data:image/gif;base64,{GIF}", f"data:image/png;base64,{GIF}", GIF, " media/good.jpg", "x", "",
)  # fmt: skip


BOTH = [(target, "file") for target in ("vllm", "anthropic", "gemini", "hf")] + [("vllm", "inline"), ("vllm", "keep")]
LATER = [(t, m) for t in ("vllm", "openai", "anthropic", "gemini", "hf") for m in ("inline", "file", "url", "keep")]


@pytest.mark.parametrize(
    ("target", "mode"), [*BOTH, *[pytest.param(*one, marks=pytest.mark.slow) for one in LATER if one not in BOTH]]
)
def test_after_a_row_with_a_medium_of_any_source_a_row_has_its_own(folder: Path, target: str, mode: str) -> None:
    """The form that the first row gives is right for each second row."""
    task = written(folder, [{"id": name, "question": "What?", "image": name} for name in NAMES], media={"mode": mode})
    rows = [row for row in task.samples() if isinstance(row, Sample)]
    alone = [rendered(Renderer(task, target=target, formed=False), row) for row in rows]
    assert len(rows) == len(NAMES)
    for first in rows:
        renderer = Renderer(task, target=target)
        renderer.render(first)
        assert [rendered(renderer, row) for row in rows] == alone, first.id


def rendered(renderer: Renderer, row: Sample) -> object:
    made = renderer.render(row)
    return str(made.error) if isinstance(made, FailedRow) else (b"".join(made.chunks), list(made.notes))
