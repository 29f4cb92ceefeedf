"""evalscope's own command line on the tour, as ``mmprompt evalscope`` starts it.

Its client adds ``detail: auto`` to pictures, and sends all sounds as ``input_audio``.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from readme_blocks import blocks_of_runner
from recording_server import MODEL
from runner_commands import (
    Tour,
    copy_tour,
    guide_words,
    rendered,
    run_command,
    run_words,
    text_of,
)
from runner_present import need
from tour_doors import evalscope_messages

pytestmark = pytest.mark.runners
need("evalscope", "evalscope")
GUIDE, CONVERTED = blocks_of_runner("mmprompt/plugins/evalscope/README.md", "evalscope")


def words(url: str, path: Path, *further: object, name: str = MODEL, **options: object) -> list[object]:
    given = json.dumps({"mmprompt": {"local_path": str(path), "extra_params": options}})
    return [
        "mmprompt", "evalscope", "eval", "--datasets", "mmprompt", "--dataset-args", given, "--model", name,
        "--api-url", url, "--work-dir", "out", "--no-timestamp", *further,
    ]  # fmt: skip


def test_the_guide_s_command_carries_all_rows(tmp_path: Path, tour: Path) -> None:
    lines = rendered(copy_tour(tour, tmp_path), changes={"audio_format": "wav"})
    wanted = Tour(lines, evalscope_messages)
    wanted.check(run_command(tmp_path, lambda url: guide_words(GUIDE.text, url), wanted.reply))
    assert len(lines) == 25


def test_general_vqa_reads_what_convert_writes(tmp_path: Path, tour: Path) -> None:
    copy_tour(tour, tmp_path)
    convert, ask = CONVERTED.text.splitlines()
    (tmp_path / "data").mkdir()
    made = run_words(tmp_path, guide_words(convert.removeprefix("mkdir data && "), ""))
    assert made.returncode == 0, made.stderr
    done = run_command(tmp_path, lambda url: guide_words(ask, url))
    assert done.code == 0, done.said[-3000:]
    lines = rendered(tmp_path / "fixtures/tour/tour_columns.jsonl")
    assert sorted(text_of(body["messages"]) for body in done.bodies) == sorted(
        text_of(evalscope_messages(line["messages"])) for line in lines.values()
    )


def test_the_settings_of_the_task_are_refused_unless_evalscope_has_them(tmp_path: Path, tour: Path) -> None:
    (tmp_path / "task.yaml").write_text(
        f"dataset: {{path: {json.dumps(str(tour / 'tour.jsonl'))}}}\n"
        "reader_cfg: {test_range: '[0:3]'}\n"
        "infer_cfg: {prompt_template: {template: '{id}'}, inferencer: {type: GenInferencer, max_out_len: 7}}\n"
    )
    done = run_command(tmp_path, lambda url: words(url, tmp_path / "task.yaml"))
    assert (done.code, done.bodies) == (1, [])
    assert """add --generation-config '{"max_tokens": 7}'""" in done.said
    mended = ("--generation-config", '{"max_tokens": 7}')
    done = run_command(tmp_path, lambda url: words(url, tmp_path / "task.yaml", *mended))
    assert [body["max_tokens"] for body in done.bodies] == [7, 7, 7], done.said
