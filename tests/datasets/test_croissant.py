"""``convert --to croissant``: rows, their media and metadata that say what Croissant 1.0 asks for."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from mmprompt import RowError, convert_dataset, dataset_task

MEDIA = Path(__file__).parents[2] / "fixtures" / "tour" / "media"
ROWS = [
    {"id": "a", "image": "coffee.jpg", "question": "What is it?", "answer": "a cup", "Level of Difficulty": 2, "w": 1},
    {"id": "b", "images": ["sign.png", "coffee.jpg"], "question": "杯子?", "answer": "一个", "easy": True, "w": 0.5},
    {"id": "c", "question": "Which?", "options": ["x", "y"], "answer": "A", "tags": []},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in ROWS), "utf-8")
    report = convert_dataset(source, tmp_path / "vqa", to="croissant", media_roots=[str(MEDIA)])
    assert (report.written, report.failed) == (3, 0)
    note = "croissant.json has no license, creator, url and datePublished, which Croissant requires; add them"
    assert report.notes == (note,)
    return tmp_path / "vqa"


def metadata(folder: Path) -> Any:
    return json.loads((folder / "croissant.json").read_text("utf-8"))


def test_the_metadata_have_what_the_specification_asks_for(folder: Path) -> None:
    said = metadata(folder)
    assert (said["@type"], said["name"]) == ("sc:Dataset", "vqa")
    assert said["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    assert said["description"].startswith("3 rows with the columns id, images, question, answer")
    context = said["@context"]
    assert (context["@vocab"], context["cr"]) == ("https://schema.org/", "http://mlcommons.org/croissant/")
    assert context["dataType"] == {"@id": "cr:dataType", "@type": "@vocab"}


def test_the_distribution_names_each_file_with_its_digest(folder: Path) -> None:
    rows, *media = metadata(folder)["distribution"]
    data = (folder / rows["contentUrl"]).read_bytes()
    assert rows["sha256"] == hashlib.sha256(data).hexdigest()
    assert (rows["contentSize"], rows["encodingFormat"]) == (f"{len(data)} B", "application/jsonlines")
    found = {path for files in media for path in folder.glob(files["includes"])}
    assert found == set((folder / "media").iterdir())
    assert {files["encodingFormat"] for files in media} == {"image/jpeg", "image/png"}
    assert {hashlib.sha256(path.read_bytes()).hexdigest()[:32] for path in found} == {path.stem for path in found}


def test_each_column_is_a_field_of_its_type(folder: Path) -> None:
    [records] = metadata(folder)["recordSet"]
    fields = {field["name"]: field for field in records["field"]}
    types = {name: (field["dataType"], field.get("repeated", False)) for name, field in fields.items()}
    assert types == {
        "id": ("sc:Text", False), "images": ("sc:Text", True), "question": ("sc:Text", False),
        "options": ("sc:Text", True), "answer": ("sc:Text", False), "Level of Difficulty": ("sc:Integer", False),
        "w": ("sc:Float", False), "easy": ("sc:Boolean", False), "tags": ("sc:Text", True),
    }  # fmt: skip
    spaced = fields["Level of Difficulty"]
    assert spaced["@id"] == "rows/Level%20of%20Difficulty"
    assert spaced["source"] == {"fileObject": {"@id": "rows.jsonl"}, "extract": {"column": "Level of Difficulty"}}


def test_the_folder_is_a_dataset_of_the_same_requests(folder: Path) -> None:
    sent = list(dataset_task(folder).requests())
    assert [request.id for request in sent] == ["a", "b", "c"]
    digests = [hashlib.sha256((MEDIA / name).read_bytes()).hexdigest() for name in ("coffee.jpg", "sign.png")]
    assert [[m.sha256 for m in request.media] for request in sent] == [digests[:1], [digests[1], digests[0]], []]
    assert [request.answers for request in sent] == [("a cup",), ("一个",), ("A",)]


@pytest.mark.filterwarnings("ignore")  # of the library and those it loads
def test_the_library_of_the_specification_reads_the_rows(folder: Path) -> None:
    mlcroissant = pytest.importorskip("mlcroissant", reason="needs mlcroissant: pip install mlcroissant")
    dataset = mlcroissant.Dataset(str(folder / "croissant.json"))
    assert not dataset.metadata.ctx.issues.errors
    first, second, _ = dataset.records("rows")
    assert (first["rows/question"], second["rows/question"]) == (b"What is it?", "杯子?".encode())
    assert [len(record["rows/images"]) for record in (first, second)] == [1, 2]
    assert (first["rows/Level%20of%20Difficulty"], second["rows/w"], second["rows/easy"]) == (2, 0.5, True)


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ([{"question": "q", "meta": {"a": 1}}], "a field cannot hold the dict of 'meta'"),
        ([{"question": "q", "meta": [[1]]}], "a field cannot hold the list of 'meta'"),
        ([{"question": "q", "meta": [None]}], "a field cannot hold the NoneType of 'meta'"),
        ([{"question": "q", "meta": 1}, {"question": "q", "meta": [1]}], "'meta' is a list in some rows and a single"),
        ([{"image": "https://example.com/a.jpg", "question": "q"}], "the medium is a URL, which is not fetched"),
    ],
)
def test_what_croissant_cannot_hold_is_refused(rows: list[dict[str, Any]], what: str, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    with pytest.raises(RowError, match=what):
        convert_dataset(tmp_path / "rows.jsonl", tmp_path / "out", to="croissant")
    assert not (tmp_path / "out").exists()
