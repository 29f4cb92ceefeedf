"""The config of AISBench's guide, run by AISBench's own command."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from opencompass_family import reply, run_config
from readme_blocks import blocks_of_runner
from runner_present import need
from stock_configs import parts_of, sha, textvqa

from mmprompt.plugins.examples import write_example

need("aisbench", "ais_bench")
pytestmark = pytest.mark.runners


@pytest.mark.parametrize(
    ("number", "mode", "found"),
    [(0, "all", "out/*/results/*/textvqa.json"), (1, "perf", "out/*/performances/*/textvqa.json")],
)
def test_the_swapped_template_sends_the_bytes_and_the_speed_is_measured(
    number: int, mode: str, found: str, tmp_path: Path
) -> None:
    config = blocks_of_runner("mmprompt/plugins/aisbench/README.md", "aisbench")[number]
    (tmp_path / "textvqa").mkdir()
    rows = textvqa(tmp_path / "textvqa")
    write_example("opencompass", str(tmp_path / "my-tokenizer"))
    text = config.text.replace("host_port=8000", "host_port=PORT").replace("/data", str(tmp_path))
    run = run_config(tmp_path, "ais_bench", text + 'work_dir = "out"\n', "--mode", mode, "--debug", reply=reply)
    assert run.code == 0, run.log[-3000:]
    sent = [parts_of(body)[0] for body in run.bodies[1:]]
    assert sent == [("image/jpeg", sha((tmp_path / "textvqa" / name).read_bytes())) for [name] in rows.media]
    assert ("Request Throughput" in run.log) == (mode == "perf")
    run.found(found)


def test_the_config_sends_the_messages_of_mmprompt_render(tmp_path: Path, tour: Path, rendered: dict[str, Any]) -> None:
    *_, config = blocks_of_runner("mmprompt/plugins/aisbench/README.md", "aisbench")
    shutil.copytree(tour, tmp_path / "fixtures/tour")
    text = config.text.replace("host_port=8000", "host_port=PORT") + 'work_dir = "out"\n'
    run = run_config(tmp_path, "ais_bench", text, "--mode", "all", "--debug", reply=reply)
    assert run.code == 0, run.log[-3000:]
    asked = [body["messages"] for body in run.bodies]
    assert all(line["messages"] in asked for line in rendered["task"])
    run.found("out/*/results/my-model/tour.json")
