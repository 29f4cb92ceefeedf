"""evalscope's own command line on the tour, as ``mmprompt evalscope`` starts it.

Its client adds ``detail: auto`` to pictures, and sends all sounds as ``input_audio``.
"""

from __future__ import annotations

import base64
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
    text_of,
)
from runner_present import need

pytestmark = pytest.mark.runners
need("evalscope", "evalscope")
GUIDE, CONVERTED = blocks_of_runner("mmprompt/plugins/evalscope/README.md", "evalscope")

FLAC = ("tour-05", "tour-25")


def words(url: str, path: Path, *further: object, name: str = MODEL, **options: object) -> list[object]:
    given = json.dumps({"mmprompt": {"local_path": str(path), "extra_params": options}})
    return [
        "mmprompt", "evalscope", "eval", "--datasets", "mmprompt", "--dataset-args", given, "--model", name,
        "--api-url", url, "--work-dir", "out", "--no-timestamp", *further,
    ]  # fmt: skip


def as_sent(messages: Any) -> Any:
    """Messages as evalscope's client writes them."""
    messages = json.loads(json.dumps(messages))
    for part in (p for m in messages if isinstance(m["content"], list) for p in m["content"]):
        if part["type"] == "image_url":
            part["image_url"].setdefault("detail", "auto")
        if part["type"] == "audio_url":
            head, _, data = part.pop("audio_url")["url"].partition(",")
            form = "wav" if "wav" in head else "mp3"
            part |= {"type": "input_audio", "input_audio": {"data": data, "format": form}}
    return messages


def results(folder: Path) -> tuple[float, list[dict[str, Any]]]:
    """The score, and the reviews in the order of the rows."""
    [report] = folder.glob("out/reports/*/mmprompt.json")
    [kept] = folder.glob("out/reviews/*/mmprompt_default.jsonl")
    [metric] = json.loads(report.read_text(encoding="utf-8"))["metrics"]
    reviews = kept.read_text(encoding="utf-8").splitlines()
    return metric["score"], sorted(map(json.loads, reviews), key=lambda review: review["index"])


@pytest.fixture(scope="module")
def run(tour: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Tour, Run]:
    folder = tmp_path_factory.mktemp("evalscope")
    lines = rendered(tour / "tour.jsonl")
    wanted = Tour({name: line for name, line in lines.items() if name not in FLAC}, as_sent)
    return folder, wanted, run_command(folder, lambda url: words(url, tour / "tour.jsonl", skip_bad=True), wanted.reply)


def test_the_tour_arrives_as_render_writes_it(run: tuple[Path, Tour, Run], tour: Path) -> None:
    _, wanted, done = run
    assert len(wanted.lines) == 23
    wanted.check(done)
    for body in done.bodies:
        for part in (p for m in body["messages"] if isinstance(m["content"], list) for p in m["content"]):
            if part["type"] == "input_audio":  # what the reader of the test knows as audio_url
                kind = "wav" if base64.b64decode(part["input_audio"]["data"][:8])[:4] == b"RIFF" else "mpeg"
                part |= {
                    "type": "audio_url",
                    "audio_url": {"url": f"data:audio/{kind};base64,{part['input_audio']['data']}"},
                }
                del part["input_audio"]
    check_parts(done.bodies, tour / "tour.jsonl", FLAC)


def test_evalscope_s_own_files_hold_the_replies_and_the_score(run: tuple[Path, Tour, Run]) -> None:
    folder, wanted, _ = run
    score, reviews = results(folder)
    assert score == pytest.approx(wanted.score, abs=1e-4)
    got = [bool(review["sample_score"]["score"]["value"]["acc"]) for review in reviews]
    assert got == [name in wanted.right for name in wanted.lines]


def test_what_evalscope_cannot_carry_is_refused_before_the_run(tmp_path: Path, tour: Path) -> None:
    done = run_command(tmp_path, lambda url: words(url, tour / "tour.jsonl"))
    assert (done.code, done.bodies) == (1, [])
    assert "2 requests cannot be made" in done.said
    for name in FLAC:
        assert (
            f'evalscope cannot carry audio as audio/flac; convert it: "extra_params": {{"audio_format": "wav"}} (sample {name}'
            in done.said
        )
    assert "Traceback" not in done.said


def test_the_guide_s_command_carries_all_rows(tmp_path: Path, tour: Path) -> None:
    lines = rendered(copy_tour(tour, tmp_path), changes={"audio_format": "wav"})
    wanted = Tour(lines, as_sent)
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
        text_of(as_sent(line["messages"])) for line in lines.values()
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


def test_five_faulty_rows_are_told_at_once_before_the_first_request(tmp_path: Path) -> None:
    path, faults = five_faults(tmp_path)
    done = run_command(tmp_path, lambda url: words(url, path))
    assert (done.code, done.bodies) == (1, [])
    assert "5 requests cannot be made" in done.said
    for fault in faults:
        assert done.said.count(fault) == 1, done.said
    assert '"extra_params": {"media_root": "DIR"}' in done.said
    assert "--media-root" not in done.said
    assert "Traceback" not in done.said
    mended = run_command(tmp_path, lambda url: words(url, path, media_root=str(tmp_path), skip_bad=True))
    assert mended.code == 0, mended.said
    assert len(mended.bodies) == 56


def test_builtin_shapes_scores_as_in_mmprompt_run(tmp_path: Path, shapes: tuple[Path, float]) -> None:
    path, score = shapes
    with served_shapes(tmp_path) as url:
        done = run_words(tmp_path, words(url, path, name="builtin:shapes"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert results(tmp_path)[0] == pytest.approx(score, abs=1e-4)
