"""lmms-eval's own command on the tour: our model by its entry point, our task class by a YAML file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recording_server import MODEL
from runner_commands import (
    Tour,
    rendered,
    run_command,
    run_words,
)
from runner_present import need

pytestmark = pytest.mark.runners
need("lmms-eval", "lmms_eval")


def words(url: str, *further: object, model: str = "mmprompt", name: str = MODEL, arguments: str = "") -> list[object]:
    server = f"model={name},base_url={url},num_concurrent=4{arguments}"
    return [
        "lmms-eval", "eval", "--include_path", "tasks", "--tasks", "tour", "--model", model, "--model_args", server,
        "--output_path", "out", "--log_samples", *further,
    ]  # fmt: skip


def write_task(folder: Path, path: Path, **options: object) -> None:
    """Write the YAML file of a task over a task file or dataset."""
    (folder / "tasks").mkdir()
    given = json.dumps({"path": str(path), **options})
    text = f"task: tour\nclass: !function mmprompt.plugins.lmms_eval.rows.Rows\ndataset_kwargs: {given}\n"
    (folder / "tasks/tour.yaml").write_text(text, encoding="utf-8")


def results(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The scores, and the samples in the order of the rows."""
    [file] = folder.glob("out/*/*_results.json")
    [samples] = folder.glob("out/*/*_samples_tour.jsonl")
    lines = map(json.loads, samples.read_text(encoding="utf-8").splitlines())
    return json.loads(file.read_text(encoding="utf-8"))["results"]["tour"], sorted(lines, key=lambda s: s["doc_id"])


def test_the_settings_of_the_task_reach_the_server(tmp_path: Path, tour: Path) -> None:
    (tmp_path / "task.yaml").write_text(
        f"dataset: {{path: {json.dumps(str(tour / 'tour.jsonl'))}}}\n"
        "reader_cfg: {test_range: '[0:3]'}\n"
        "infer_cfg: {prompt_template: {template: {begin: [{role: SYSTEM, prompt: Be brief.}],"
        " round: [{role: HUMAN, prompt: '{id}'}]}}, inferencer: {type: GenInferencer, max_out_len: 7}}\n"
        "model: {generation: {temperature: 0.5, top_k: 3}}\n"
    )
    write_task(tmp_path, tmp_path / "task.yaml")
    wanted = Tour(rendered(tmp_path / "task.yaml"))
    done = run_command(tmp_path, lambda url: words(url, "--gen_kwargs", "temperature=0.25"), wanted.reply)
    wanted.check(done)
    for body in done.bodies:
        assert (body["max_tokens"], body["temperature"], body["top_k"]) == (7, 0.25, 3)


@pytest.mark.parametrize(
    ("options", "further", "said"),
    [
        ({}, {"model": "openai"}, "use --model mmprompt"),
        ({}, {"arguments": ",modle=x"}, "did you mean 'model'?"),
        ({"medai_root": "x"}, {}, "did you mean 'media_root'?"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    options: dict[str, str], further: dict[str, str], said: str, tmp_path: Path, tour: Path
) -> None:
    write_task(tmp_path, tour / "tour.jsonl", **options)
    done = run_command(tmp_path, lambda url: words(url, **further))
    assert (done.code, done.bodies) == (1, [])
    assert said in done.said, done.said
    assert "Traceback" not in done.said


def test_a_dead_server_is_told_in_seconds_and_ends_the_run(tmp_path: Path, tour: Path) -> None:
    write_task(tmp_path, tour / "tour.jsonl")
    done = run_words(tmp_path, words("http://127.0.0.1:9/v1"))
    assert done.returncode == 1
    assert "mmprompt: MM901 the server at http://127.0.0.1:9/v1/" in done.stderr
    assert "Traceback" not in done.stderr
