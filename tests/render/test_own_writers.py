"""Writers of the tests' own, that send what ours do not: whatever they read of a medium is that of the row's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from form_rows import by_form, lines_of
from PIL import Image

from mmprompt import load_task
from mmprompt.media.base64_text import encode_text
from mmprompt.render.builder import RequestBuilder
from mmprompt.targets.gemini import GeminiWriter
from mmprompt.targets.part_writer import Payload

TOUR = Path(__file__).parents[2] / "fixtures" / "tour" / "media"
TARGETS = ("vllm", "gemini", *[pytest.param(name, marks=pytest.mark.slow) for name in ("openai", "anthropic", "hf")])
READ: dict[str, Callable[[Any], object]] = {
    "media type": lambda part: part.media_type,
    "modality": lambda part: part.modality,
    "form": lambda part: part.form,
    "options": lambda part: [list(pair) for pair in part.options],
    "further keys": lambda part: [list(pair) for pair in part.extra],
    "origin": lambda part: part.origin,
    "file's name": lambda part: part.origin.rpartition("/")[2],
    "origin in a text": lambda part: f"from {part.origin}",
    "origin put to a text": lambda part: "from " + part.origin + ".",
    "origin's length": lambda part: len(part.origin),
    "changes": lambda part: part.changes,
    "whether it was changed": lambda part: "changed" if part.changes else "as it was",
    "findings": lambda part: [str(finding) for finding in part.findings],
    "whether there are findings": lambda part: bool(part.findings),
    "number of findings": lambda part: len(part.findings),
    "size": lambda part: len(part.data),
    "whether there is data": lambda part: bool(part.data),
    "first bytes": lambda part: part.data[:6].hex(),
    "base64": lambda part: encode_text(part.data),
    "base64 of another wire form": lambda part: Payload("data:x;base64,", part),
    "data URI": lambda part: f"data:{part.media_type};base64,{encode_text(part.data)}",
    "kind by its bytes": lambda part: "jpeg" if part.data.startswith(b"\xff\xd8") else "other",
    "frames": lambda part: len(part.frames),
    "all of it": repr,
    "kept keys": lambda part: repr(part._replace(data=b"")),
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """Return a folder of pictures that differ in all that is known of them, and rows that name them."""
    root = tmp_path_factory.mktemp("pictures")
    for name, size in (("a.jpg", 8), ("b.png", 9), ("c.webp", 10), ("d.jpg", 11), ("e.png", 12), ("g.jpg", 13)):
        kind = {"a": "JPEG", "b": "PNG", "c": "WEBP", "d": "JPEG", "e": "JPEG", "g": "PNG"}[name[0]]
        Image.new("RGB", (size, size), (size, 0, 0)).save(root / name, kind)
    gif = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
    texts = ["a.jpg", "b.png", "c.webp", "d.jpg", "e.png", "g.jpg", gif, f"data:image/png;base64,{gif}", "./a.jpg"]
    objects = [Image.new("L", (3, 3)), Image.new("CMYK", (4, 4)), (root / "a.jpg").read_bytes()]
    given = [*texts, *objects, *reversed(texts)]
    return root, [{"id": n, "question": f"What {n}?", "image": image} for n, image in enumerate(given)]


def task_of(root: Path, rows: list[dict[str, Any]], **media: object) -> Any:
    return load_task({"dataset": {"rows": rows}, "media": {"roots": [str(root)], **media}})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("fact", READ)
def test_what_a_writer_reads_of_a_medium_is_that_of_the_row(
    fact: str, target: str, rows: tuple[Path, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    task, read = task_of(*rows), READ[fact]
    writer = type(RequestBuilder(task, target).writer)
    embedded = writer._embedded
    monkeypatch.setattr(writer, "_embedded", lambda self, part: {**embedded(self, part), "more": read(part)})
    one, other = [lines_of(task, target, formed=formed) for formed in (True, False)]
    assert one == other
    lines = one[0].splitlines()
    assert len(lines) + len(one[1]) == len(rows[1])
    assert len(lines) >= 16
    assert all(b'"more":' in line for line in lines)


def display_names(target: str, task: Any) -> list[str]:
    lines = lines_of(task, target, formed=True)[0].splitlines()
    found = []
    for line in lines:
        *_, part = [part for part in json.loads(line)["contents"][0]["parts"] if "text" not in part]
        (held,) = part.values()
        found.append(held["display_name"])
    return found


def test_a_name_for_display_that_gemini_gets_is_that_of_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line more in each method of the writer, for files and for addresses."""
    embedded, named = GeminiWriter._embedded, GeminiWriter._named

    def with_name(part: Any, key: str, source: str) -> Any:
        part[key]["display_name"] = source.rpartition("/")[2]
        return part

    def display_embedded(self: GeminiWriter, part: Any) -> Any:
        return with_name(embedded(self, part), "inline_data", part.origin)

    def display_named(self: GeminiWriter, ref: Any) -> Any:
        return with_name(named(self, ref), "file_data", ref.name)

    monkeypatch.setattr(GeminiWriter, "_embedded", display_embedded)
    monkeypatch.setattr(GeminiWriter, "_named", display_named)
    files = sorted([path.name for path in TOUR.iterdir() if path.suffix in {".jpg", ".png", ".webp"}])
    names = [files[number % len(files)] for number in range(20)]
    rows = [{"id": n, "question": f"{n}?", "image": name} for n, name in enumerate(names)]
    assert display_names("gemini", task_of(TOUR, rows)) == names
    names = [f"{n % 7}.{('jpg', 'png', 'x')[n % 3]}" for n in range(20)]
    rows = [{"id": n, "question": f"{n}?", "image": f"https://a.example/{name}"} for n, name in enumerate(names)]
    assert display_names("gemini", task_of(TOUR, rows)) == names
    mixed = [{"id": n, "question": f"{n}?", "image": names[n] if n % 2 else files[0]} for n in range(20)]
    for n in range(1, 20, 2):
        mixed[n]["image"] = f"https://a.example/{names[n]}"
    assert display_names("gemini", task_of(TOUR, mixed)) == [names[n] if n % 2 else files[0] for n in range(20)]


def test_a_fact_that_is_put_into_a_request_as_it_is_leaves_rows_their_form(monkeypatch: pytest.MonkeyPatch) -> None:
    embedded = GeminiWriter._embedded
    monkeypatch.setattr(
        GeminiWriter,
        "_embedded",
        lambda self, part: {**embedded(self, part), "from": part.origin, "was": part.findings},
    )
    rows = [{"id": n, "question": f"{n}?", "image": "coffee.jpg"} for n in range(5)]
    assert by_form(task_of(TOUR, rows), "gemini") == 5
