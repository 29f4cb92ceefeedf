"""The config of AISBench's guide, run by AISBench's own command."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from opencompass_family import reply, run_config
from readme_blocks import blocks_of_runner
from runner_present import need

need("aisbench", "ais_bench")
pytestmark = pytest.mark.runners


def test_the_config_sends_the_messages_of_mmprompt_render(tmp_path: Path, tour: Path, rendered: dict[str, Any]) -> None:
    [config] = blocks_of_runner("mmprompt/plugins/aisbench/README.md", "aisbench")
    shutil.copytree(tour, tmp_path / "fixtures/tour")
    text = config.text.replace("host_port=8000", "host_port=PORT") + 'work_dir = "out"\n'
    run = run_config(tmp_path, "ais_bench", text, "--mode", "all", "--debug", reply=reply)
    assert run.code == 0, run.log[-3000:]
    asked = [body["messages"] for body in run.bodies]
    assert all(line["messages"] in asked for line in rendered["task"])
    run.found("out/*/results/my-model/tour.json")
