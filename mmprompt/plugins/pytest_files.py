"""Which files pytest collects as datasets: those that the ini option ``mmprompt_check_files`` names."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

_OPTION = "mmprompt_check_files"


def add_option(parser: pytest.Parser) -> None:
    """Add the ini option."""
    what = "patterns of dataset files, such as *.check.jsonl: each row is a test, which fails if it has findings"
    parser.addini(_OPTION, what, type="args", default=[])


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a dataset that the option names."""
    if not any(fnmatch(file_path.name, pattern) for pattern in parent.config.getini(_OPTION)):
        return None
    from mmprompt.plugins.pytest_datasets import DatasetFile  # noqa: PLC0415  # only where datasets are tests

    return DatasetFile.from_parent(parent, path=file_path)
