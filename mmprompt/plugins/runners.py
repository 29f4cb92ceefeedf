"""The runners that have a plugin."""

from __future__ import annotations

from importlib import metadata
from typing import NamedTuple

from mmprompt.errors import TaskError, nearest, shown

_TORCH = "torch==2.13.0"


class Runner(NamedTuple):
    """One runner.

    ``name`` is also the name of its extra and of its example. ``distribution`` is its name for pip. ``torch``: it needs
    PyTorch and does not choose a build of it. ``alone``: it is no part of the extra, as its requirements would replace
    PyTorch. ``tested`` lists the versions that the tests ran with.
    ``modules`` must import, the runner's own command first. ``group`` is its entry-point group; empty if its configs
    name our classes. ``registration`` says how the runner finds mmprompt.
    """

    name: str
    distribution: str
    tested: str
    modules: tuple[str, ...]
    group: str
    registration: str
    torch: bool = False
    alone: bool = False

    @property
    def install(self) -> str:
        """The command that installs it where mmprompt is installed."""
        steps = [f"pip install 'mmprompt[{self.name}]'"]
        if self.torch:
            steps.insert(0, f"pip install {_TORCH}")
        if self.alone:
            steps.append(f"pip install --no-deps {self.distribution}=={self.tested}")
        return " && ".join(steps)

    @property
    def version(self) -> str | None:
        """The version that is installed; None if it is not."""
        try:
            return metadata.version(self.distribution)
        except metadata.PackageNotFoundError:
            return None


_PLUGINS = "mmprompt.plugins."
_AISBENCH = ("ais_bench.benchmark.cli.main", f"{_PLUGINS}aisbench", f"{_PLUGINS}aisbench.calculators")
_BY_CLASS = "classes in a config, or custom_imports; there is nothing to register"
RUNNERS = (
    Runner("aisbench", "ais-bench-benchmark", "3.1.20260630", _AISBENCH, "ais_bench.benchmark_plugins",
           "short names by entry point, or classes in a config", torch=True),
    Runner("opencompass", "opencompass", "0.5.4", ("opencompass.cli.main", f"{_PLUGINS}opencompass"), "", _BY_CLASS,
           torch=True),
    Runner("inspect-ai", "inspect-ai", "0.3.280 to 0.3.285", ("inspect_ai", f"{_PLUGINS}inspect_ai"), "inspect_ai",
           "the task mmprompt/task and the model provider mmprompt by entry point"),
    Runner("pytest", "pytest", "8.0 to 9.2", ("pytest", f"{_PLUGINS}pytest_plugin"), "pytest11",
           "the fixture vlm by entry point"),
    Runner("lm-eval", "lm-eval", "0.4.13", ("lm_eval.__main__", f"{_PLUGINS}lm_eval"), "",
           "the task and the model by the command mmprompt lm-eval", torch=True),
    Runner("lmms-eval", "lmms-eval", "0.7.3", ("lmms_eval.cli.dispatch", f"{_PLUGINS}lmms_eval"), "lmms_eval.models",
           "the model mmprompt by entry point", torch=True, alone=True),
    Runner("evalscope", "evalscope", "1.14.1", ("evalscope.cli.cli", f"{_PLUGINS}evalscope.benchmark"), "",
           "the benchmark mmprompt by the command mmprompt evalscope", torch=True),
    Runner("deepeval", "deepeval", "4.3.1", ("deepeval", f"{_PLUGINS}deepeval"), "",
           "functions in test files; there is nothing to register"),
)  # fmt: skip


def runner_named(name: str) -> Runner:
    """Return the runner called ``name``."""
    named = {runner.name: runner for runner in RUNNERS}
    if name not in named:
        raise TaskError(f"unknown runner {shown(name)}", nearest(name, named))
    return named[name]
