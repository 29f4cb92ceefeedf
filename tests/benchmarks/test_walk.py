"""The way of one sample through the package, measured by ``walk.py``; the bounds may only be tightened."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

LONG = {
    "calls": 195,
    "functions": 172,
    "modules": 33,
    "depth": 18,
    "stays": 33,
    "returns": 23,
    "climbs": 14,
    "callbacks": 0,
    "types": 17,
}
FORMED = {
    "calls": 72,
    "functions": 66,
    "modules": 14,
    "depth": 8,
    "stays": 33,
    "returns": 26,
    "climbs": 15,
    "callbacks": 4,
    "types": 7,
}


@pytest.mark.parametrize(
    ("options", "most", "rooms"), [([], FORMED, {"render", "media"}), (["--long"], LONG, {"templates", "targets"})]
)
def test_a_sample_goes_no_longer_way_than_before(
    options: list[str], most: dict[str, int], rooms: set[str], command_environment: dict[str, str]
) -> None:
    script = [sys.executable, Path(__file__).with_name("walk.py"), "--json", *options]
    done = subprocess.run(script, env=command_environment, capture_output=True, timeout=60, check=True)
    found = json.loads(done.stdout)
    assert {name: count for name, count in found["figures"].items() if count > most[name]} == {}
    assert rooms <= set(found["rooms"])  # the walk was followed
    line = json.dumps(found["line"])
    assert line.count("data:image/jpeg;base64,") == 2
    assert "Which of the two pictures shows an animal" in line
