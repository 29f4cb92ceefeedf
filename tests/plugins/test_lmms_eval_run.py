"""lmms-eval's own command on the tour: our model by its entry point, our task class by a YAML file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from readme_blocks import blocks_of_runner
from recording_server import MODEL
from runner_commands import (
    Run,
    Tour,
    check_parts,
    copy_tour,
    five_faults,
    guide_words,
    rendered,
    run_command,
    run_words,
    served_shapes,
)
from runner_present import need

pytestmark = pytest.mark.runners
need("lmms-eval", "lmms_eval")
TASK, GUIDE = blocks_of_runner("mmprompt/plugins/lmms_eval/README.md", "lmms-eval")


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


@pytest.fixture(scope="module")
def run(tour: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Tour, Run]:
    folder = tmp_path_factory.mktemp("lmms_eval")
    wanted = Tour(rendered(copy_tour(tour, folder)))
    (folder / "tasks").mkdir()
    (folder / "tasks/tour.yaml").write_text(TASK.text, encoding="utf-8")
    return folder, wanted, run_command(folder, lambda url: guide_words(GUIDE.text, url), wanted.reply)


def test_the_tour_arrives_as_render_writes_it(run: tuple[Path, Tour, Run], tour: Path) -> None:
    _, wanted, done = run
    wanted.check(done)
    check_parts(done.bodies, tour / "tour.jsonl")
    assert all(body.keys() == {"messages", "model"} for body in done.bodies)


def test_lmms_eval_s_own_files_hold_the_replies_and_the_score(run: tuple[Path, Tour, Run]) -> None:
    folder, wanted, _ = run
    scores, samples = results(folder)
    assert scores["score,none"] == pytest.approx(wanted.score)
    assert [bool(sample["score"]) for sample in samples] == [name in wanted.right for name in wanted.lines]
    assert not any("base64" in file.read_text(encoding="utf-8") for file in folder.glob("out/*/*"))


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


def test_five_faulty_rows_are_told_at_once_before_the_first_request(tmp_path: Path) -> None:
    path, faults = five_faults(tmp_path)
    write_task(tmp_path, path)
    done = run_command(tmp_path, words)
    assert (done.code, done.bodies) == (1, [])
    assert "5 requests cannot be made" in done.said
    for fault in faults:
        assert done.said.count(fault) == 1, done.said
    assert "dataset_kwargs: {media_root: DIR}" in done.said
    assert "--media-root" not in done.said
    assert "Traceback" not in done.said


def test_the_way_to_mend_that_is_told_works(tmp_path: Path) -> None:
    path, _ = five_faults(tmp_path)
    write_task(tmp_path, path, media_root=str(tmp_path), skip_bad=True)
    done = run_command(tmp_path, words)
    assert done.code == 0, done.said
    assert len(done.bodies) == 56


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


def test_builtin_shapes_scores_as_in_mmprompt_run(tmp_path: Path, shapes: tuple[Path, float]) -> None:
    path, score = shapes
    write_task(tmp_path, path)
    with served_shapes(tmp_path) as url:
        done = run_words(tmp_path, words(url, name="builtin:shapes"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert results(tmp_path)[0]["score,none"] == pytest.approx(score)
