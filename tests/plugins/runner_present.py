"""Whether a runner is there: where it is absent its tests are skipped, and in its own step of CI they fail."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest


def need(runner: str, module: str) -> None:
    """Skip the test module that asks, or fail it where CI says that this runner must be there."""
    found = find_spec(module)
    if found is not None and found.origin is not None:  # a folder of that name has none
        return
    expected = os.environ.get("CI") == "true" and runner in os.environ.get("MMPROMPT_RUNNER", "").split()
    if expected:
        pytest.fail(f"{runner} is not installed, and this step of CI is for it", pytrace=False)
    pytest.skip(f"{runner} is not installed: pip install 'mmprompt[{runner}]'", allow_module_level=True)
