"""Timing of contenders against each other on a noisy machine, and rows of the table that is printed."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple


class Timed(NamedTuple):
    """CPU and wall seconds of one contender, for each repetition."""

    cpu: list[float]
    wall: list[float]

    @property
    def best_cpu(self) -> float:
        """The repetition that was disturbed least."""
        return min(self.cpu)

    @property
    def best_wall(self) -> float:
        """Likewise, in wall seconds."""
        return min(self.wall)

    @property
    def spread(self) -> float:
        """How far the median CPU time lies above the best, as a fraction of it."""
        return statistics.median(self.cpu) / self.best_cpu - 1


class Row(NamedTuple):
    """One line of the table: what was measured, the figures, the bar if there is one, and whether it was reached."""

    what: str
    figures: str
    bar: str = ""
    reached: bool | None = None


def interleaved(contenders: Mapping[str, Callable[[], object]], repetitions: int) -> dict[str, Timed]:
    """Run all contenders once to warm up, then in turns; what disturbs one repetition disturbs all of them."""
    timed = {name: Timed([], []) for name in contenders}
    for run in contenders.values():
        run()
    for _ in range(repetitions):
        for name, run in contenders.items():
            gc.collect()
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            timed[name].cpu.append(time.process_time() - cpu)
            timed[name].wall.append(time.perf_counter() - wall)
    return timed


def against(what: str, timed: Mapping[str, Timed], ours: str, bound: str, count: int, bar: float | None) -> Row:
    """Return the row of ``ours`` as a fraction of ``bound``: samples per second over samples per second."""
    cpu = timed[bound].best_cpu / timed[ours].best_cpu
    wall = timed[bound].best_wall / timed[ours].best_wall
    rates = f"{count / timed[ours].best_cpu:,.0f} of {count / timed[bound].best_cpu:,.0f} per CPU second"
    figures = f"{cpu:.2f} CPU, {wall:.2f} wall; {rates}; median {timed[ours].spread:+.0%}, {timed[bound].spread:+.0%}"
    return Row(what, figures, "" if bar is None else f">= {bar:.2f}", None if bar is None else cpu >= bar)


def print_table(rows: list[Row]) -> None:
    """Print the rows in columns."""
    width = max(len(row.what) for row in rows)
    for what, figures, bar, reached in rows:
        verdict = "" if reached is None else f"   [{bar}: {'reached' if reached else 'MISSED'}]"
        print(f"{what:<{width}}   {figures}{verdict}", flush=True)
