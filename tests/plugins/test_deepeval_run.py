"""deepeval with a judge that sees the pictures of our test cases."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest
from runner_commands import rendered, run_command
from runner_present import need

pytestmark = pytest.mark.runners
need("deepeval", "deepeval")

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
