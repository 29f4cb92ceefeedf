"""deepeval's own command on the tour: test cases of rows, with the model's replies, and a judge that sees pictures."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from readme_blocks import blocks_of_runner
from runner_commands import Tour, five_faults, rendered, run_command, run_words, served_shapes
from runner_present import need

pytestmark = pytest.mark.runners
need("deepeval", "deepeval")

[GUIDE] = [
    b.text for b in blocks_of_runner("mmprompt/plugins/deepeval/README.md", "deepeval") if b.language == "python"
]
SOUND_OR_VIDEO = ("tour-04", "tour-05", "tour-06", "tour-07", "tour-08", "tour-25")
URL = "tour-15"
JUDGE = """
from deepeval.metrics import GEval
from deepeval.models import LocalModel
from deepeval.test_case import SingleTurnParams

from mmprompt.plugins.deepeval import rows, to_deepeval

requests = rows("DATASET", skip_bad=True).requests
params = [SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT]
judge = LocalModel(model="judge", base_url="URL", api_key="none")
for row in requests[:3]:
    metric = GEval(name="right", criteria="Is it right?", evaluation_steps=["Look."], evaluation_params=params,
                   model=judge, async_mode=False)
    metric.measure(to_deepeval(row, f"reply {row.id}"), _show_indicator=False)
"""


def words(url: str) -> list[object]:
    return ["deepeval", "test", "run", "test_tour.py"]


def guide(folder: Path, path: Path, url: str, options: str = "", name: str = "qwen") -> None:
    """Write the test file of the guide for a dataset and a server."""
    text = GUIDE.replace('"fixtures/tour/tour.jsonl", skip_bad=True', f'"{path}"{options}')
    text = text.replace("http://127.0.0.1:8000/v1", url).replace("qwen", name)
    (folder / "test_tour.py").write_text(text, encoding="utf-8")


def ran(folder: Path, path: Path, reply: Any, options: str = "") -> Any:
    def command(url: str) -> list[object]:
        guide(folder, path, url, options)
        return words(url)

    return run_command(folder, command, reply)


def results(folder: Path) -> dict[str, bool]:
    """Whether each case passed, as deepeval's own file says."""
    kept = json.loads((folder / ".deepeval/.latest_test_run.json").read_text(encoding="utf-8"))
    kept = kept.get("testRunData", kept)
    return {case["name"]: case["success"] for case in kept["testCases"]}


def test_rows_with_pictures_are_asked_scored_and_kept(tmp_path: Path, tour: Path) -> None:
    lines = rendered(tour / "tour.jsonl")
    wanted = Tour({name: line for name, line in lines.items() if name not in (*SOUND_OR_VIDEO, URL)})
    done = ran(tmp_path, tour / "tour.jsonl", wanted.reply, ", skip_bad=True")
    assert len(wanted.lines) == 18
    assert sorted(json.dumps(b["messages"], sort_keys=True) for b in done.bodies) == sorted(wanted.by_text)
    got = results(tmp_path)
    assert {name: passed for name, passed in got.items() if passed} == dict.fromkeys(wanted.right, True)
    assert sorted(got) == sorted(wanted.lines)


def test_what_deepeval_cannot_carry_is_refused_before_the_run(tmp_path: Path, tour: Path) -> None:
    done = ran(tmp_path, tour / "tour.jsonl", lambda body: "ok")
    assert (done.code != 0, done.bodies) == (True, [])
    assert "7 requests cannot be made" in done.said
    for name, lost in {
        "tour-04": "message 1: deepeval cannot carry audio",
        "tour-07": "message 1: deepeval cannot carry video",
        "tour-15": "message 1: deepeval would fetch the image that goes by its URL",
    }.items():
        assert f"{lost}; leave the row out (sample {name}" in done.said


def test_five_faulty_rows_are_told_at_once_before_the_first_request(tmp_path: Path) -> None:
    path, faults = five_faults(tmp_path)
    done = ran(tmp_path, path, lambda body: "ok")
    assert (done.code != 0, done.bodies) == (True, [])
    for fault in faults:
        assert fault in done.said
    assert 'media_root="DIR"' in done.said


def test_a_judge_sees_the_pictures_at_their_places(tmp_path: Path, tour: Path) -> None:
    lines = [*rendered(tour / "tour.jsonl").values()][:3]

    def command(url: str) -> list[object]:
        text = JUDGE.replace("DATASET", str(tour / "tour.jsonl")).replace("URL", url)
        (tmp_path / "judge.py").write_text(text, encoding="utf-8")
        return ["python", "judge.py"]

    done = run_command(tmp_path, command, lambda body: '{"score": 7, "reason": "fine"}')
    assert done.code == 0, done.said
    for body, line in zip(done.bodies, lines, strict=True):
        parts = body["messages"][0]["content"]
        pictures = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
        sent = [hashlib.sha256(base64.b64decode(url.partition(",")[2])).hexdigest() for url in pictures]
        assert sent == [medium.sha256 for medium in line["media"]]
        kinds = [part["type"] for part in line["messages"][0]["content"]]
        own = [part["type"] for part in parts]
        first = next(n for n, part in enumerate(parts) if part["type"] == "image_url")
        between = own[first : len(own) - own[::-1].index("image_url")]
        first = kinds.index("image_url")
        assert between == kinds[first : len(kinds) - kinds[::-1].index("image_url")]


def test_builtin_shapes_scores_as_in_mmprompt_run(tmp_path: Path, shapes: tuple[Path, float]) -> None:
    path, score = shapes
    with served_shapes(tmp_path) as url:
        guide(tmp_path, path, url, name="builtin:shapes")
        done = run_words(tmp_path, words(url))
    assert done.returncode == 0, done.stdout + done.stderr
    got = results(tmp_path)
    assert len(got) == 60
    assert sum(got.values()) / len(got) == pytest.approx(score)
