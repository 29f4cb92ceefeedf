"""Five faulty rows of 60 in AISBench and OpenCompass: all of them on the console of the runner's command, unasked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from opencompass_family import SKELETONS, run_config
from runner_commands import five_faults
from runner_present import need
from test_aisbench_run import HEAD as AISBENCH
from test_opencompass_run import HEAD as OPENCOMPASS
from test_opencompass_run import tokenizer

need("opencompass", "opencompass")
need("aisbench", "ais_bench")
pytestmark = pytest.mark.runners

__all__ = ["tokenizer"]

ROOTS = 'media=dict(roots=["DIR"])'
WAYS = (ROOTS, ROOTS, "give an image", "optional_columns", "encode the file again")
"""What mends each of the five in a config."""


@pytest.mark.parametrize("command", ["ais_bench", "opencompass"])
def test_five_faulty_rows_of_60_are_told_on_the_console_before_the_first_request(
    tmp_path: Path, tokenizer: str, command: str
) -> None:
    rows, places = five_faults(tmp_path)
    prompt_mm = {key: SKELETONS[key] for key in ("image", "text")}
    prompt = {"type": "MMPromptTemplate", "template": {"round": [{"role": "HUMAN", "prompt_mm": prompt_mm}]}}
    task = str(tmp_path / "task.json")
    Path(task).write_text(
        json.dumps({"dataset": str(rows), "infer_cfg": {"prompt_template": prompt}}), encoding="utf-8"
    )
    heads = {
        "ais_bench": AISBENCH + "models = [model(MMPromptChat, 'm')]\ndel model\n",
        "opencompass": OPENCOMPASS.format(tokenizer=tokenizer),
    }
    config = f"datasets = [dataset('five', {task!r}, dict(type=MMPromptTask, task={task!r}))]\ndel dataset\n"
    run = run_config(tmp_path, command, heads[command] + config, "--mode", "infer", reply=lambda _: "?")
    assert run.bodies == []
    assert "5 of 60 rows" in run.console, run.log[-3000:]
    for place, way in zip(places, WAYS, strict=True):
        [line] = [line for line in run.console.splitlines() if place in line]
        assert way in line
    assert "--media-root" not in run.log
    ours = [line.split(", in ")[1] for line in run.log.splitlines() if "mmprompt/plugins" in line and ", in " in line]
    assert ours
    assert not [name for name in ours if name.startswith("_")]
