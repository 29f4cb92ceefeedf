"""The runners that have a door here, and what each is called where."""

from __future__ import annotations

from typing import NamedTuple

from mmprompt.errors import TaskError, nearest, shown


class Runner(NamedTuple):
    """One runner.

    ``name`` is also that of its extra and of its example; ``distribution`` what pip calls it; ``tested`` the versions
    that the tests ran with. ``doors`` are the modules that must load, first that of the runner's own command. ``group``
    is the entry-point group that it looks in; one without a group takes what its configs name, as ``how`` says.
    """

    name: str
    distribution: str
    tested: str
    doors: tuple[str, ...]
    group: str
    how: str

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
