"""``render_file``: the file of ``mmprompt render -o``, written from Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mmprompt import MMPromptError, SourceError, TaskError, load_task, render_file
from mmprompt.cli import main
from mmprompt.media.changes import Changes

ROOT = Path(__file__).parents[2]
TOUR, BROKEN = ROOT / "fixtures/tour/task.yaml", ROOT / "fixtures/broken/broken.jsonl"


@pytest.mark.parametrize("target", ["vllm", "anthropic"])
@pytest.mark.parametrize("emit", ["messages", "prompt"])
def test_the_file_is_that_of_the_command(target: str, emit: str, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.jsonl", tmp_path / "theirs.jsonl"
    report = render_file(TOUR, ours, target=target, emit=emit, on_error=lambda _: None)
    main(["render", str(TOUR), "--target", target, "--emit", emit, "-o", str(theirs)])
    assert ours.read_bytes() == theirs.read_bytes()
    assert report.rendered == len(theirs.read_text("utf-8").splitlines())


def test_changes_of_media_are_those_of_the_command(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.jsonl", tmp_path / "theirs.jsonl"
    render_file(TOUR, ours, changes={"max_side": 64, "frames": 2}, limit=3, workers=2)
    main(["render", str(TOUR), "--max-side", "64", "--frames", "2", "--limit", "3", "-o", str(theirs)])
    assert ours.read_bytes() == theirs.read_bytes()


def test_without_on_error_the_first_error_is_raised_and_the_older_file_stays(tmp_path: Path) -> None:
    output = tmp_path / "requests.jsonl"
    output.write_text("older")
    with pytest.raises(MMPromptError) as caught:
        render_file(BROKEN, output)
    assert (caught.value.where.line, output.read_text()) == (2, "older")
    assert list(tmp_path.iterdir()) == [output]


def test_with_on_error_bad_rows_and_repeated_ids_are_told_and_the_others_written(tmp_path: Path) -> None:
    rows = [{"id": 1, "question": "a"}, {"id": 2, "image": "no.jpg"}, {"id": 1, "question": "b"}]
    data, output = tmp_path / "rows.jsonl", tmp_path / "requests.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    errors: list[MMPromptError] = []
    assert render_file(data, output, on_error=errors.append) == (2, 1, 1)
    assert [(error.code, error.where.line) for error in errors] == [("MM201", 2), ("MM009", 3)]
    assert isinstance(errors[0], SourceError)
    assert len(output.read_text().splitlines()) == 2


def test_a_repeated_id_alone_is_counted_and_not_raised(tmp_path: Path) -> None:
    task = load_task({"dataset": {"rows": [{"id": 1, "question": "a"}, {"id": 1, "question": "b"}]}})
    assert render_file(task, tmp_path / "requests.jsonl") == (2, 0, 1)


def test_notes_on_media_and_on_all_rows_are_told(tmp_path: Path) -> None:
    data, notes = tmp_path / "rows.jsonl", []
    (tmp_path / "a.jpg").write_bytes((ROOT / "fixtures/shapes/media/shapes-02.png").read_bytes())
    data.write_text('{"image": "a.jpg", "question": "q", "remark": "r"}\n')
    render_file(data, tmp_path / "requests.jsonl", on_note=notes.append)
    assert [note.code for note in notes] == ["MM204", "MM616"]


def test_an_output_that_is_an_input_or_a_folder_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "rows.jsonl"
    data.write_text('{"question": "q"}\n')
    with pytest.raises(TaskError, match="is also an input or output"):
        render_file(data, data)
    with pytest.raises(TaskError, match="is a folder"):
        render_file(data, tmp_path)


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"workers": 1.5}, {"limit": -1}, {"limit": "3"}])
def test_a_number_that_counts_nothing_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(TaskError, match=f"{name} is"):
        render_file(TOUR, tmp_path / "requests.jsonl", **wrong)
    assert not [*tmp_path.iterdir()]


def test_changes_of_a_prompt_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="changes of media with emit 'prompt'"):
        render_file(TOUR, tmp_path / "prompts.jsonl", emit="prompt", changes={"max_side": 64})
    assert render_file(TOUR, tmp_path / "prompts.jsonl", emit="prompt", changes=Changes(), limit=1).rendered == 1
