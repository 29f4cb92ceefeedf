"""The memory of a run in shards does not grow with the rows, in the command nor in its processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import re, resource, sys
from mmprompt.cli import main

code = main(sys.argv[1:])
with open("/proc/self/status") as file:  # ru_maxrss begins with the peak of the process that started this one
    own = int(re.search(r"VmHWM:\\s+(\\d+)", file.read())[1])
print(code, own, max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, command_environment: dict[str, str]) -> None:
    peaks = []
    for rows in (1_000, 11_000):
        data = tmp_path / "rows.jsonl"
        with data.open("w", encoding="utf-8") as file:
            for n in range(rows):
                row = {"id": f"row-{n}", "image": f"https://x.example/{n}.jpg", "question": f"What is {n}?"}
                file.write(json.dumps(row) + "\n")
        words = ["render", str(data), "-o", str(tmp_path / "out.jsonl")]
        engine = ["--engine", "local", "--workers", "2", "--rows-per-shard", "400"]
        done = subprocess.run(
            [sys.executable, "-c", RUN, *words, *engine], env=command_environment, stdout=subprocess.PIPE, check=True
        )
        code, *peak = map(int, done.stdout.split())
        assert code == 0
        peaks.append(peak)
    for few, many in zip(*peaks, strict=True):
        assert many - few < 3 << 10  # KiB; as objects the rows are 5 MB
