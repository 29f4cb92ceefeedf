"""``mmprompt serve builtin:shapes`` as the model in AISBench and OpenCompass: their score is that of ``mmprompt run``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from opencompass_family import run_config
from runner_commands import served_shapes
from runner_present import need
from test_aisbench_run import HEAD as AISBENCH
from test_opencompass_run import HEAD as OPENCOMPASS
from test_opencompass_run import tokenizer

need("opencompass", "opencompass")
need("aisbench", "ais_bench")
pytestmark = pytest.mark.runners

__all__ = ["tokenizer"]


@pytest.mark.parametrize("command", ["ais_bench", "opencompass"])
def test_the_score_of_the_built_in_model_is_that_of_mmprompt_run(
    tmp_path: Path, tokenizer: str, shapes: tuple[Path, float], command: str
) -> None:
    task, score = str(shapes[0]), shapes[1]
    heads = {
        "ais_bench": AISBENCH + "models = [model(MMPromptChat, 'm')]\ndel model\n",
        "opencompass": OPENCOMPASS.format(tokenizer=tokenizer),
    }
    with served_shapes(tmp_path) as url:
        port = url.rpartition(":")[2].partition("/")[0]
        config = heads[command].replace("PORT", port)
        config += f"datasets = [dataset('shapes', {task!r}, dict(type=MMPromptTask, task={task!r}))]\ndel dataset\n"
        run = run_config(tmp_path, command, config, "--mode", "all", "--debug", reply=lambda _: "")
    assert run.code == 0, run.log[-3000:]
    found = json.loads(run.found("out/*/results/m/shapes.json").read_text(encoding="utf-8"))
    assert found["accuracy"] == pytest.approx(100 * score)
    assert 0 < score <= 1
