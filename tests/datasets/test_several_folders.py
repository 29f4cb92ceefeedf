"""Files of several folders as one dataset: the media of a row lie beside its own file."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mmprompt import load_task
from mmprompt.cli import main
from mmprompt.datasets.read import open_dataset
from mmprompt.errors import DatasetError, MMPromptError
from mmprompt.tasks.convert import convert_dataset
from mmprompt.tasks.load import dataset_task

MEDIA = Path(__file__).parents[2] / "fixtures" / "tour" / "media"
PICTURES = {"one": "coffee.jpg", "two": "chelsea.jpg"}
"""What ``a.jpg`` is in each folder."""

HASHES = {folder: hashlib.sha256((MEDIA / name).read_bytes()).hexdigest() for folder, name in PICTURES.items()}


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for folder, picture in PICTURES.items():
        (tmp_path / folder).mkdir()
        shutil.copy(MEDIA / picture, tmp_path / folder / "a.jpg")
        rows = [{"id": f"{folder}-{n}", "image": "a.jpg", "question": "q"} for n in range(2)]
        (tmp_path / folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [str(tmp_path / folder / "rows.jsonl") for folder in PICTURES]


def sent(task: Any, **options: Any) -> list[list[str]]:
    return [[medium.sha256 for medium in request.media] for request in task.requests(**options)]


def test_each_row_sends_the_picture_beside_its_file(files: list[str]) -> None:
    one, two = HASHES.values()
    assert sent(dataset_task(files)) == [[one], [one], [two], [two]]
    assert sent(dataset_task(files), workers=2, changes={"mono": True}) == [[one], [one], [two], [two]]
    assert sent(dataset_task(files[::-1])) == [[two], [two], [one], [one]]
    assert sent(load_task({"dataset": {"path": files}})) == [[one], [one], [two], [two]]


def test_names_that_go_out_lead_to_the_picture(files: list[str], tmp_path: Path) -> None:
    urls = [
        request.messages[0]["content"][0]["image_url"]["url"] for request in dataset_task(files).requests(media="file")
    ]
    assert urls == [(tmp_path / folder / "a.jpg").as_uri() for folder in ("one", "one", "two", "two")]
    kept = [
        request.messages[0]["content"][0]["image_url"]["url"] for request in dataset_task(files).requests(media="keep")
    ]
    assert kept == ["a.jpg"] * 4


def test_tags_templates_chats_and_structs_find_it_too(tmp_path: Path, files: list[str]) -> None:
    url = {"type": "image_url", "image_url": {"url": "file://a.jpg"}}
    of = {
        "tagged": {"content": "<AIS_IMAGE_START>a.jpg<AIS_CONTENT_TAG><AIS_TEXT_START>q"},
        "chat": {"messages": [{"role": "user", "content": [url, {"type": "text", "text": "q"}]}]},
        "struct": {"pic": {"bytes": None, "path": "a.jpg"}, "question": "q"},
        "list": {"images": ["a.jpg", "a.jpg"], "question": "q"},
    }
    for name, row in of.items():
        for folder in PICTURES:
            (tmp_path / folder / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
        paths = [str(tmp_path / folder / f"{name}.jsonl") for folder in PICTURES]
        times = 2 if name == "list" else 1
        assert sent(dataset_task(paths)) == [[digest] * times for digest in HASHES.values()], name
    item = {"role": "HUMAN", "prompt_mm": {"image": {**url, "image_url": {"url": "file://{letter}.jpg"}}}}
    (tmp_path / "one" / "letters.jsonl").write_text('{"letter": "a"}\n')
    (tmp_path / "two" / "letters.jsonl").write_text('{"letter": "a"}\n')
    paths = [str(tmp_path / folder / "letters.jsonl") for folder in PICTURES]
    prompt = {"type": "MMPromptTemplate", "template": {"round": [item]}}
    task = load_task({"dataset": {"path": paths}, "infer_cfg": {"prompt_template": prompt}})
    assert sent(task) == [[digest] for digest in HASHES.values()]


def test_examples_keep_the_picture_beside_their_own_file(files: list[str]) -> None:
    item = {"role": "HUMAN", "prompt_mm": {"image": {"type": "image_url", "image_url": {"url": "file://{image}"}}}}
    infer = {
        "ice_template": {"type": "MMPromptTemplate", "template": {"round": [item]}},
        "prompt_template": {
            "type": "MMPromptTemplate",
            "ice_token": "</E>",
            "template": {"begin": ["</E>"], "round": [item]},
        },
        "retriever": {"type": "FixKRetriever", "fix_id_list": [0, -1 % 2]},
    }
    one, two = HASHES.values()
    for train, shots in ((files[0], [one, one]), (files[1], [two, two]), (files, [one, one])):
        task = load_task({"dataset": {"path": files, "train": train}, "infer_cfg": infer})
        assert sent(task) == [[*shots, own] for own in (one, one, two, two)]
    infer["retriever"] = {"type": "FixKRetriever", "fix_id_list": [0, 3]}
    task = load_task({"dataset": {"path": files[0], "train": files}, "infer_cfg": infer})
    assert sent(task) == [[one, two, one]] * 2


def test_a_picture_that_lies_in_the_other_folder_alone_is_missing(files: list[str], tmp_path: Path) -> None:
    (tmp_path / "two" / "a.jpg").unlink()
    errors: list[MMPromptError] = []
    assert len(list(dataset_task(files).requests(on_error=errors.append))) == 2
    assert [(error.where.file, error.where.column) for error in errors] == [(files[1], "image")] * 2
    assert all("no such file: 'a.jpg'" in error.what for error in errors)


def test_a_pattern_over_folders_is_rendered(
    files: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["render", str(tmp_path / "*" / "rows.jsonl")]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 4


def test_conversion_writes_each_picture_and_refuses_to_keep_names(files: list[str], tmp_path: Path) -> None:
    report = convert_dataset(files, tmp_path / "out.jsonl", to="jsonl", store="files")
    assert report.written == 4
    assert sent(dataset_task(tmp_path / "out.jsonl")) == sent(dataset_task(files))
    with pytest.raises(DatasetError, match="lie in several folders"):
        convert_dataset(files, tmp_path / "kept.jsonl", to="jsonl", store="keep")


def test_standard_input_has_no_folder_among_others(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"question": "q"}\n')))
    with pytest.raises(DatasetError, match="stands among files"):
        open_dataset([files[0], "-"])


@pytest.mark.parametrize("names", [["a.jsonl", "a.jsonl"], ["a.jsonl", "./a.jsonl"], ["*.jsonl", "a.jsonl"]])
def test_a_file_that_is_named_twice_is_refused(
    names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        Path(f"{name}.jsonl").write_text(json.dumps({"id": name, "question": f"What is {name}?", "answer": "x"}) + "\n")
    with pytest.raises(DatasetError, match=r"a\.jsonl' is named twice; name it once"):
        open_dataset(names)
    for command in ("render", "check"):
        assert main([command, *names]) != 0
        assert "is named twice" in "".join(capsys.readouterr())
    assert [row.id for row in open_dataset(["a.jsonl", "b.jsonl"])] == ["a", "b"]
