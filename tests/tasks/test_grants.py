"""A task file of data allows nothing by itself that its reader did not say too; Python and mappings are their word."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from time_taken import processor_seconds

from mmprompt import MediaPolicy, TaskError, load_task
from mmprompt.cli import main
from mmprompt.tasks.grants import Grants
from mmprompt.tasks.load import load_file
from mmprompt.tasks.media import task_policy

ASKED = [
    ("roots: [/]", "media.roots '/'", ["--media-root", "/"]),
    ("roots: [../beside]", "media.roots '", ["--media-root", "BESIDE"]),
    ("roots: [link]", "media.roots '", ["--media-root", "BESIDE"]),
    ("policy: trusted", "media.policy: trusted", ["--policy", "trusted"]),
    ("max_bytes: 1073741824", "media.max_bytes", ["--policy", "trusted"]),
    ("max_seconds: null", "media.max_seconds", ["--policy", "trusted"]),
    ("max_request_media: 20000", "media.max_request_media", ["--policy", "trusted"]),
    ("max_side_pixels: 70000", "media.max_side_pixels", ["--policy", "trusted"]),
    ("isolate: false", "media.isolate", ["--policy", "trusted"]),
    ("read_also: tiff", "media.read_also tiff", ["--read-also", "tiff"]),
    ("{fetch: true, allow_domains: A.example}", "media.allow_domains 'A.example', media.fetch",
     ["--allow-domain", "a.example", "--fetch"]),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, tour: Path) -> Path:
    own, beside = tmp_path / "own", tmp_path / "beside"
    own.mkdir()
    beside.mkdir()
    (own / "link").symlink_to(beside)
    for place in (own, beside):
        shutil.copy(tour / "media" / "coffee.jpg", place / f"{place.name}.jpg")
        (place / "rows.jsonl").write_text(json.dumps({"image": f"{place.name}.jpg", "question": "?"}) + "\n")
    return own


def written(folder: Path, media: str, dataset: str = "rows.jsonl", name: str = "task.yaml") -> str:
    media = media if media.startswith("{") else f"{{{media}}}"
    (folder / name).write_text(f"dataset: {dataset}\nmedia: {media}\n")
    return str(folder / name)


@pytest.mark.parametrize(("media", "what", "options"), ASKED)
def test_what_a_task_file_cannot_allow_is_an_error_that_prints_the_options(
    media: str, what: str, options: list[str], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = written(folder, media)
    options = [option.replace("BESIDE", str(folder.parent / "beside")) for option in options]
    with pytest.raises(TaskError) as caught:
        load_task(path)
    assert str(caught.value).startswith(f"{path}: a task file cannot allow by itself: {what}")
    assert all(option in caught.value.hint for option in options if option.startswith("--"))
    assert main(["render", path]) == 2
    assert main(["render", path, *options]) == 0, capfd.readouterr().err
    assert load_task(path, policy=MediaPolicy([str(folder)])).media["roots"] == []


@pytest.mark.parametrize(("media", "_what", "_options"), ASKED)
def test_the_hostile_policy_leaves_out_what_a_task_file_cannot_allow(
    media: str, _what: str, _options: list[str], folder: Path
) -> None:
    path = written(folder, media)
    assert main(["render", path, "--policy", "hostile"]) == 0
    policy = task_policy(load_file(path, None, Grants("hostile")), preset="hostile")
    assert policy == MediaPolicy.preset("hostile", [str(folder)])


def test_the_options_are_printed_together_and_work_as_printed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = written(folder, "{roots: [../beside, link], fetch: true, allow_domains: [a.example, b.example]}")
    assert main(["render", path]) == 2
    printed = capfd.readouterr().err.partition("pass ")[2].partition("; in Python")[0].split()
    assert printed.count("--allow-domain") == 2
    assert main(["render", path, *printed]) == 0
    assert main(["render", path, *[word for word in printed if word != "--fetch"]]) == 2
    assert "pass --fetch;" in capfd.readouterr().err


@pytest.mark.parametrize(
    "media",
    [
        "roots: [pictures, .]",
        "roots: [pictures/../pictures]",
        "{policy: hostile, max_bytes: 67108864, max_seconds: 3600}",
        "{max_bytes: 5, timeout: 1, isolate: true, mode: file, fit: false}",
    ],
)
def test_a_task_file_may_say_what_lies_inside_its_folder_and_the_default_limits(media: str, folder: Path) -> None:
    (folder / "pictures").mkdir()
    assert task_policy(load_task(written(folder, media))).roots[0] == str(folder)


def test_a_dataset_that_a_task_names_opens_its_folder_with_a_note_and_under_hostile_with_the_option(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    beside = folder.parent / "beside"
    path = written(folder, "roots: [../beside]", "../beside/rows.jsonl")
    assert main(["render", path]) == 0
    note = f"note: MM206 the task names a dataset outside its own folder, so media below {beside} may be read\n"
    assert note in capfd.readouterr().err
    assert main(["render", path, "--policy", "hostile"]) == 2
    assert f"pass --media-root {folder}/../beside;" in capfd.readouterr().err
    assert main(["render", path, "--policy", "hostile", "--media-root", str(beside)]) == 0
    own_words = written(folder, "{}", "../beside/rows.jsonl")
    assert main(["render", own_words, "--policy", "hostile", "--dataset", str(beside / "rows.jsonl")]) == 0
    with pytest.raises(TaskError, match="pass --media-root"):
        load_task(written(folder, "policy: hostile", "../beside/rows.jsonl"))
    load_task(own_words, policy=MediaPolicy.preset("hostile"))


def test_a_training_set_that_no_retriever_reads_opens_no_folder(folder: Path) -> None:
    beside = folder.parent / "beside"
    path = folder / "task.json"
    for shots, roots in ([0], [str(folder), str(beside)]), (None, [str(folder)]):
        prompt = {"template": "</E>{question}", "ice_token": "</E>"}
        infer: dict[str, Any] = {"prompt_template": prompt, "ice_template": "{question}"}
        infer |= {} if shots is None else {"retriever": {"type": "FixKRetriever", "fix_id_list": shots}}
        dataset = {"path": str(folder / "rows.jsonl"), "train": str(beside / "rows.jsonl")}
        path.write_text(json.dumps({"dataset": dataset, "infer_cfg": infer}))
        task = load_task(path)
        assert list(task_policy(task).roots) == roots
        assert any(f"media below {beside} may be read" in note for note in task.notes()) == (shots is not None)
        hostile = Grants("hostile")
        if shots is None:
            assert load_file(str(path), grants=hostile).train is not None
        else:
            with pytest.raises(TaskError, match="--media-root"):
                load_file(str(path), grants=hostile)


def test_a_higher_limit_counts_under_trusted(folder: Path) -> None:
    task = load_file(written(folder, "max_side_pixels: 70000"), grants=Grants("trusted"))
    assert task_policy(task, preset="trusted").max_side_pixels == 70000
    task = load_file(written(folder, "max_side_pixels: 1000"), grants=Grants("hostile"))
    assert task_policy(task, preset="hostile").max_side_pixels == 1000


def test_a_link_to_a_folder_outside_is_outside(folder: Path) -> None:
    assert "may be read" in load_task(written(folder, "{}", "link/rows.jsonl")).notes()[0]


def test_a_python_task_and_a_mapping_are_their_readers_own_word(folder: Path) -> None:
    media = {"roots": ["/"], "policy": "trusted", "fetch": True, "allow_domains": ["a.example"], "read_also": "tiff"}
    (folder / "task.py").write_text(f"dataset = 'rows.jsonl'\nmedia = {media!r}\n")
    rows: dict[str, Any] = {"dataset": str(folder / "rows.jsonl"), "media": media}
    for task in (load_task(str(folder / "task.py")), load_task(rows)):
        policy = task_policy(task)
        assert (policy.fetch, policy.isolate, policy.roots[-1]) == (True, False, "/")


def test_a_root_too_long_for_a_path_is_refused_at_once(folder: Path) -> None:
    with pytest.raises(TaskError, match="cannot allow by itself"):
        load_task(written(folder, "roots: [" + "a/" * 200_000 + "]"))
    with pytest.raises(TaskError, match="cannot allow by itself"):
        load_task(written(folder, 'roots: ["a\\0b"]'))


@pytest.fixture
def secret(folder: Path) -> Path:
    """A folder beside the task's own, to which links in that one lead."""
    other = folder.parent / "secret"
    (folder / "[x]").mkdir()
    other.mkdir()
    (other / "rows.jsonl").write_text('{"id": 1, "question": "the secret"}\n')
    (folder / "door").symlink_to(other)
    (folder / "alias.jsonl").symlink_to(other / "rows.jsonl")
    (folder / "[x]" / "shelf").mkdir()
    (folder / "[x]" / "shelf" / "rows.jsonl").symlink_to(other / "rows.jsonl")
    (folder / "own.jsonl").write_text('{"id": 1, "question": "mine"}\n')
    return other


@pytest.mark.parametrize(
    "dataset",
    [
        '"do*/../../secret/rows.jsonl"',
        '"*/../../secret/*"',
        '"[x]/../../secret/rows.jsonl"',
        '"doo?/rows.jsonl"',
        "door",
        ".",
        "alias.jsonl",
        '"al*.jsonl"',
        "{path: own.jsonl, join: ['alias.jsonl:id']}",
        "{path: own.jsonl, join: ['doo?/rows.jsonl:id']}",
        "{path: own.jsonl, join: ['[x]/shelf:id']}",
        "{path: own.jsonl, train: 'do*/rows.jsonl'}",
    ],
)
def test_no_pattern_and_no_link_leads_out_of_the_folder_under_hostile(
    dataset: str, folder: Path, secret: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if dataset == ".":
        for name in ("rows.jsonl", "own.jsonl", "alias.jsonl"):
            (folder / name).unlink()
        (folder / "link").unlink()
    shots = "retriever: {type: FixKRetriever, fix_id_list: [0]}, ice_template: '{question}'"
    infer = f"{{prompt_template: {{template: '</E>{{question}}', ice_token: '</E>'}}, {shots}}}"
    path = folder / "task.yaml"
    path.write_text(f"dataset: {dataset}\n" + (f"infer_cfg: {infer}\n" if "train" in dataset else ""))
    assert main(["render", str(path), "--policy", "hostile"]) == 2
    out, err = capfd.readouterr()
    assert "secret" not in out
    assert "pass --media-root" in err or "goes up ('..') behind a wildcard" in err, err
    if "--media-root" in err:
        assert main(["render", str(path), "--policy", "hostile", "--media-root", str(secret)]) == 0
        assert main(["render", str(path)]) == 0
        only_rows = (".", "alias.jsonl", '"al*.jsonl"')
        opens_media = dataset not in only_rows and "join" not in dataset
        assert (f"media below {secret} may be read" in capfd.readouterr().err) == opens_media


def test_a_pattern_outside_is_refused_under_hostile_before_it_is_walked(folder: Path) -> None:
    path = written(folder, "policy: hostile", '"/*/*/*/*/*/*/*/none"')

    def load() -> None:
        with pytest.raises(TaskError, match="media of the dataset in '/'"):
            load_task(path)

    assert processor_seconds(load, enough=0.5) < 1


def test_a_dataset_in_a_cache_of_hugging_face_is_inside_although_its_files_are_links(tmp_path: Path) -> None:
    own = tmp_path / "datasets--org--name" / "snapshots" / "1a2b"
    blobs = own.parents[1] / "blobs"
    own.mkdir(parents=True)
    blobs.mkdir()
    (blobs / "0f").write_text('{"question": "?"}\n')
    (own / "rows.jsonl").symlink_to("../../blobs/0f")
    assert len(list(load_task(written(own, "policy: hostile")).messages())) == 1
