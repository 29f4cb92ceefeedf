"""The cells of the grid: what ``render`` and ``body()`` send is what a program written by hand sends."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from grid import Effort, Grid, all_cells  # noqa: E402  # they stand beside this file
from grid_bound import Cell  # noqa: E402

pytestmark = pytest.mark.slow
CELLS = [cell for cell, _ in all_cells(quick=False)]


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Grid:
    return Grid(str(tmp_path_factory.mktemp("grid")), Effort(), media=12, distinct=4)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_requests_are_those_of_a_program_written_by_hand(grid: Grid, cell: Cell) -> None:
    if cell.form == "parquet" and importlib.util.find_spec("pyarrow") is None:
        pytest.skip("needs pyarrow: pip install 'mmprompt[parquet]'")
    grid.check(cell, grid.data(cell, 60))
