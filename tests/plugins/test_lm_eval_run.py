"""lm-eval's own command line on the tour, as ``mmprompt lm-eval`` starts it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from readme_blocks import blocks_of_runner
from recording_server import MODEL
from runner_commands import (
    Tour,
    guide_words,
    rendered,
    run_command,
    run_words,
)
from runner_present import need

pytestmark = pytest.mark.runners
need("lm-eval", "lm_eval")

_, TASK, COMMAND = blocks_of_runner("mmprompt/plugins/lm_eval/README.md", "lm-eval")


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
    done = run_command(tmp_path, lambda url: guide_words(COMMAND.text, url), wanted.reply)
    wanted.check(done)
    for body in done.bodies:
        assert (body["max_tokens"], body["temperature"], body["top_k"]) == (7, 0.25, 3)
    assert results(tmp_path, "tour")[0]["exact_match,none"] == pytest.approx(wanted.score)


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
