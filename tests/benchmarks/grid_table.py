"""The lines of the grid: figures of a cell, the bars that its doors have to reach, and what is compared across cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from grid_bound import Cell
from timing import Row

DOORS = ("bound", "render", "body", "messages")
FLAT = ("tags", "columns", "choices A-D", "template", "options")
HEAD = f"{'':<46}{'loops':<54}processes\n{'':<46}" + "".join(
    f"{name:<{9 if name == 'bound' else 15}}" for name in (*DOORS, *DOORS[:3])
)
MESSAGES_BAR, DOORS_BAR = 2.0, 1.1

Figures = dict[str, float]
"""From contender to microseconds of CPU time a row."""


class Measured(NamedTuple):
    """The figures of a cell: of loops, and of processes where they were measured."""

    cell: Cell
    loops: Figures
    processes: Figures

    @property
    def best(self) -> Figures:
        """Those of processes, else those of loops."""
        return self.processes or self.loops

    def ratio(self, door: str) -> float:
        """The bound over a door."""
        return self.best["bound"] / self.best[door]

    def missed(self) -> list[str]:
        """Return the doors that miss their bars."""
        bars = {door: bar_of(self.cell, door) for door in ("render", "body") if door in self.best}
        return [f"{door} < {bar}" for door, bar in bars.items() if bar is not None and self.ratio(door) < bar]

    def __str__(self) -> str:
        shown = [_shown(self.loops, name) for name in DOORS] + [_shown(self.processes, name) for name in DOORS[:3]]
        missed = self.missed()
        return f"{self.cell.name:<46}{''.join(shown)}{'MISSED: ' + ', '.join(missed) if missed else ''}".rstrip()


def _shown(figures: Figures, name: str) -> str:
    if name == "bound":
        return f"{figures[name]:<9.1f}" if figures else " " * 9
    shown = f"{figures[name]:.1f} ({figures['bound'] / figures[name]:.2f})" if name in figures else ""
    return f"{shown:<15}"


def bar_of(cell: Cell, door: str) -> float | None:
    """Return the least ratio to the bound that is to be reached; None where there is no bar."""
    if cell.target != "vllm" or cell.form != "jsonl" or cell.ids == "none":
        return None
    is_flat, is_render = cell.shape in FLAT, door == "render"
    if cell.medium == "url":
        if is_flat and cell.shape != "options":
            return (0.5 if cell.shape == "tags" else 0.4) if is_render else 0.25
        return 0.2 if is_render else 0.15
    if cell.medium == "jpeg":
        flat = 0.9 if is_render else 0.7
        return 0.8 if cell.shape == "four-shot" else flat if is_flat else 0.7
    return 0.8 if cell.medium == "base64" and is_render else None


def slowest(measured: Sequence[Measured]) -> Iterator[str]:
    """Yield a line for each medium and door: the cell that is the farthest from its bound."""
    for medium in dict.fromkeys(m.cell.medium for m in measured):
        for door in ("render", "body"):
            last = min((m for m in measured if m.cell.medium == medium and door in m.best), key=lambda m: m.ratio(door))
            yield f"slowest {medium}, {door}: {last.ratio(door):.2f}, {last.best[door]:.1f} us a row: {last.cell.name}"


def comparisons(measured: Sequence[Measured]) -> Iterator[Row]:
    """Yield what is compared with another cell, or with another door, and how many cells miss a bar."""
    of = {m.cell: m for m in measured}
    plain, task = of.get(Cell("columns")), of.get(Cell("template"))
    if plain and task:
        times = task.loops["messages"] / plain.loops["messages"]
        what = "messages() of a task, time over rows without one"
        yield Row(what, f"{times:.2f}", f"<= {MESSAGES_BAR}", times <= MESSAGES_BAR)
    for m in measured:
        if m.cell.medium == "bytes":
            loops, times = (figures["render"] / figures["body"] for figures in (m.loops, m.best))
            what = f"render, time over body(): {m.cell.name}"
            yield Row(what, f"{times:.2f} (in loops {loops:.2f})", f"<= {DOORS_BAR}", times <= DOORS_BAR)
    missed = sum(bool(m.missed()) for m in measured)
    yield Row("cells that miss a bar", f"{missed} of {len(measured)}", "0", not missed)
