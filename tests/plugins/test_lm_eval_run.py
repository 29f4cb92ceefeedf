"""lm-eval's own command line on the tour, as ``mmprompt lm-eval`` starts it."""

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
need("lm-eval", "lm_eval")

GUIDE, TASK = blocks_of_runner("mmprompt/plugins/lm_eval/README.md", "lm-eval")
ADDED = {"model", "max_tokens", "temperature", "seed"}
"""Keys of a request that lm-eval adds beside the messages."""


def words(
    url: str, *further: object, path: object = "", model: str = "mmprompt-chat", name: str = MODEL
) -> list[object]:
    server = f"model={name},base_url={url}/chat/completions,num_concurrent=4"
    given = ["--metadata", f"path={path}"] if path else []
    return [
        "mmprompt", "lm-eval", "run", "--model", model, "--model_args", server, "--output_path", "out", "--log_samples",
        *given, *further,
    ]  # fmt: skip


def results(folder: Path, task: str = "mmprompt") -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The scores of a task, and its samples in the order of the rows."""
    [file] = folder.glob("out/*/results_*.json")
    [samples] = folder.glob(f"out/*/samples_{task}_*.jsonl")
    lines = map(json.loads, samples.read_text(encoding="utf-8").splitlines())
    return json.loads(file.read_text(encoding="utf-8"))["results"][task], sorted(lines, key=lambda s: s["doc_id"])


@pytest.fixture(scope="module")
def run(tour: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Tour, Run]:
    folder = tmp_path_factory.mktemp("lm_eval")
    wanted = Tour(rendered(copy_tour(tour, folder)))
    return folder, wanted, run_command(folder, lambda url: guide_words(GUIDE.text, url), wanted.reply)


def test_the_tour_arrives_as_render_writes_it(run: tuple[Path, Tour, Run], tour: Path) -> None:
    _, wanted, done = run
    wanted.check(done)
    check_parts(done.bodies, tour / "tour.jsonl")
    assert all(body.keys() == {"messages", *ADDED} for body in done.bodies)


def test_lm_eval_s_own_files_hold_the_replies_and_the_score(run: tuple[Path, Tour, Run]) -> None:
    folder, wanted, _ = run
    scores, samples = results(folder)
    assert scores["score,none"] == pytest.approx(wanted.score)
    assert [sample["doc"]["id"] for sample in samples] == list(wanted.lines)
    assert [bool(sample["score"]) for sample in samples] == [name in wanted.right for name in wanted.lines]
    assert not any("base64" in file.read_text(encoding="utf-8") for file in folder.glob("out/*/*"))


def test_a_yaml_file_names_rows_metrics_and_settings(tmp_path: Path, tour: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "task.yaml").write_text(
        f"dataset: {{path: {json.dumps(str(tour / 'tour.jsonl'))}}}\n"
        "reader_cfg: {test_range: '[0:3]'}\n"
        "infer_cfg: {prompt_template: {template: {begin: [{role: SYSTEM, prompt: Be brief.}],"
        " round: [{role: HUMAN, prompt: '{id}'}]}}, inferencer: {type: GenInferencer, max_out_len: 7}}\n"
        "model: {generation: {temperature: 0.5, top_k: 3}}\n"
    )
    (tmp_path / "tasks/tour.yaml").write_text(
        TASK.text.replace("fixtures/tour/tour.jsonl", "task.yaml") + "generation_kwargs: {temperature: 0.25}\n"
    )
    wanted = Tour(rendered(tmp_path / "task.yaml"))
    done = run_command(tmp_path, lambda url: words(url, "--tasks", "tour", "--include_path", "tasks"), wanted.reply)
    wanted.check(done)
    for body in done.bodies:
        assert (body["max_tokens"], body["temperature"], body["top_k"]) == (7, 0.25, 3)
    assert results(tmp_path, "tour")[0]["exact_match,none"] == pytest.approx(wanted.score)


def test_five_faulty_rows_are_told_at_once_before_the_first_request(tmp_path: Path) -> None:
    path, faults = five_faults(tmp_path)
    done = run_command(tmp_path, lambda url: words(url, "--tasks", "mmprompt", path=path))
    assert (done.code, done.bodies) == (1, [])
    assert "5 requests cannot be made" in done.said
    for fault in faults:
        assert done.said.count(fault) == 1, done.said
    assert "--metadata media_root=DIR" in done.said
    assert "--media-root" not in done.said
    assert "Traceback" not in done.said


def test_the_way_to_mend_that_is_told_works(tmp_path: Path) -> None:
    path, _ = five_faults(tmp_path)
    mended = ("--metadata", f"media_root={tmp_path}", "skip_bad=true")
    done = run_command(tmp_path, lambda url: words(url, "--tasks", "mmprompt", *mended, path=path))
    assert done.code == 0, done.said
    assert len(done.bodies) == 56


@pytest.mark.parametrize(
    ("further", "said"),
    [
        (["--model", "local-chat-completions", "--apply_chat_template"], "use --model mmprompt-chat"),
        (["--system_instruction", "Be brief."], "write a SYSTEM item in its template"),
        (["--metadata", "fit=maybe"], "give true or false"),
    ],
)
def test_what_cannot_be_asked_is_one_line(further: list[str], said: str, tmp_path: Path, tour: Path) -> None:
    done = run_command(tmp_path, lambda url: words(url, "--tasks", "mmprompt", *further, path=tour / "tour.jsonl"))
    assert (done.code, done.bodies) == (1, [])
    assert said in done.said, done.said
    assert "Traceback" not in done.said


def test_a_dead_server_is_told_in_seconds(tmp_path: Path, tour: Path) -> None:
    done = run_words(tmp_path, words("http://127.0.0.1:9/v1", "--tasks", "mmprompt", path=tour / "tour.jsonl"))
    assert done.returncode == 1
    assert "Connect" in done.stderr + done.stdout


def test_builtin_shapes_scores_as_in_mmprompt_run(tmp_path: Path, shapes: tuple[Path, float]) -> None:
    path, score = shapes
    with served_shapes(tmp_path) as url:
        done = run_words(tmp_path, words(url, "--tasks", "mmprompt", path=path, name="builtin:shapes"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert results(tmp_path)[0]["score,none"] == pytest.approx(score)
