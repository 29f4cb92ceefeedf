"""The config of AISBench's guide, run by AISBench's own command."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from opencompass_family import reply, run_config
from readme_blocks import PACKAGE, blocks_of_runner
from runner_present import need
from stock_configs import parts_of, sha, textvqa

need("aisbench", "ais_bench")
pytestmark = pytest.mark.runners


def test_the_swapped_template_sends_the_bytes_and_the_speed_is_measured(tmp_path: Path) -> None:
    swap, perf, _ = blocks_of_runner("mmprompt/plugins/aisbench/README.md", "aisbench")
    (tmp_path / "textvqa").mkdir()
    rows = textvqa(tmp_path / "textvqa")
    shutil.copytree(PACKAGE / "plugins/examples/opencompass", tmp_path / "my-tokenizer")
    lines = {line.split()[-1]: line for line in perf.text.splitlines() if "import" in line}
    kept = [lines.get(line.split()[-1], line) for line in swap.text.splitlines()[:-1] if line]
    text = (
        "\n".join([*kept, *perf.text.splitlines()[-1:], ""])
        .replace("host_port=8000", "host_port=PORT")
        .replace("/data", str(tmp_path))
    )
    run = run_config(tmp_path, "ais_bench", text + 'work_dir = "out"\n', "--mode", "perf", "--debug", reply=reply)
    assert run.code == 0, run.log[-3000:]
    sent = [parts_of(body)[0] for body in run.bodies[1:]]
    assert sent == [("image/jpeg", sha((tmp_path / "textvqa" / name).read_bytes())) for [name] in rows.media]
    assert "Request Throughput" in run.log
    run.found("out/*/performances/*/textvqa.json")


def test_the_config_sends_the_messages_of_mmprompt_render(tmp_path: Path, tour: Path, rendered: dict[str, Any]) -> None:
    *_, config = blocks_of_runner("mmprompt/plugins/aisbench/README.md", "aisbench")
    shutil.copytree(tour, tmp_path / "fixtures/tour")
    text = config.text.replace("host_port=8000", "host_port=PORT") + 'work_dir = "out"\n'
    run = run_config(tmp_path, "ais_bench", text, "--mode", "all", "--debug", reply=reply)
    assert run.code == 0, run.log[-3000:]
    asked = [body["messages"] for body in run.bodies]
    assert all(line["messages"] in asked for line in rendered["task"])
    run.found("out/*/results/my-model/tour.json")
