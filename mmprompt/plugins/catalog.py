"""The runners that have a door here, and what each is called where."""

from __future__ import annotations

from typing import NamedTuple

from mmprompt.errors import TaskError, nearest, shown


class Runner(NamedTuple):
    """One runner.

    ``name`` is also the name of its extra and of its example. ``distribution`` is its name for pip. ``tested`` lists
    the versions that the tests ran with. ``modules`` must import, the runner's own command first. ``group`` is its
    entry-point group, empty where its configs name our classes. ``registration`` says how the runner finds mmprompt.
    """

    name: str
    distribution: str
    tested: str
    modules: tuple[str, ...]
    group: str
    registration: str

    @property
    def install(self) -> str:
        """The command that installs it."""
        return f"pip install 'mmprompt[{self.name}]'"


RUNNERS = (
    Runner(
        "aisbench",
        "ais-bench-benchmark",
        "3.1.20260630",
        ("ais_bench.benchmark.cli.main", "mmprompt.plugins.aisbench", "mmprompt.plugins.aisbench.calculators"),
        "ais_bench.benchmark_plugins",
        "short names by entry point, or classes in a config",
    ),
    Runner(
        "opencompass",
        "opencompass",
        "0.5.4",
        ("opencompass.cli.main", "mmprompt.plugins.opencompass"),
        "",
        "classes in a config, or custom_imports; there is nothing to register",
    ),
    Runner(
        "inspect-ai",
        "inspect-ai",
        "0.3.280 to 0.3.285",
        ("inspect_ai", "mmprompt.plugins.inspect_ai"),
        "inspect_ai",
        "the task mmprompt/task and the model provider mmprompt by entry point",
    ),
    Runner(
        "pytest",
        "pytest",
        "8.0 to 9.2",
        ("pytest", "mmprompt.plugins.pytest_plugin"),
        "pytest11",
        "the fixture vlm by entry point",
    ),
)


def runner_named(name: str) -> Runner:
    """Return the runner called ``name``.

    Raises:
        TaskError: there is none.
    """
    for runner in RUNNERS:
        if runner.name == name:
            return runner
    raise TaskError(f"there is no runner {shown(name)}", nearest(name, [runner.name for runner in RUNNERS]))
