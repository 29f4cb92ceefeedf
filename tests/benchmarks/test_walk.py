"""The way of one sample through the package, measured by ``walk.py``; the bounds may only be tightened."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MOST = {  # the aims are 220 calls, 24 modules, 12 climbs and 13 types
    "calls": 190,
    "functions": 169,
    "modules": 30,
    "depth": 18,
    "stays": 28,
    "returns": 19,
    "climbs": 12,
    "callbacks": 0,
    "types": 17,
}


def test_a_sample_goes_no_longer_way_than_before(command_environment: dict[str, str]) -> None:
    script = [sys.executable, Path(__file__).with_name("walk.py"), "--json"]
    done = subprocess.run(script, env=command_environment, capture_output=True, timeout=60, check=True)
    found = json.loads(done.stdout)
    assert {name: count for name, count in found["figures"].items() if count > MOST[name]} == {}
    assert {"templates", "targets", "media"} <= set(found["rooms"])  # the walk was followed
    line = json.dumps(found["line"])
    assert line.count("data:image/jpeg;base64,") == 2
    assert "Which of the two pictures shows an animal" in line
