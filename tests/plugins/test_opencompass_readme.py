"""The config of OpenCompass's guide, run by OpenCompass's own command."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from opencompass_family import reply, run_config
from readme_blocks import blocks_of_runner
from runner_present import need

from mmprompt.plugins.examples import write_example

need("opencompass", "opencompass")
pytestmark = pytest.mark.runners


def test_the_config_sends_the_messages_of_mmprompt_render(tmp_path: Path, tour: Path, rendered: dict[str, Any]) -> None:
    [config] = blocks_of_runner("mmprompt/plugins/opencompass/README.md", "opencompass")
    shutil.copytree(tour, tmp_path / "fixtures/tour")
    write_example("opencompass", str(tmp_path / "my-tokenizer"))
    text = config.text.replace("127.0.0.1:8000", "127.0.0.1:PORT") + 'work_dir = "out"\n'
    run = run_config(tmp_path, "opencompass", text, "--debug", reply=reply)
    assert run.code == 0, run.log[-3000:]
    asked = [body["messages"] for body in run.bodies]
    assert all(line["messages"] in asked for line in rendered["task"])
    run.found("out/*/results/my-model/tour.json")
