"""Datasets in shards: each is rendered, checked or run alone, on any engine, and the outputs are merged in order.

A process that renders shards does not load what checks or runs them: each name is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mmprompt.scale.plan import plan_shards
    from mmprompt.scale.render_job import merge_rendered, render_specs
    from mmprompt.scale.shard_check import CheckSpec, check_shard
    from mmprompt.scale.shard_render import RenderSpec, render_shard
    from mmprompt.scale.shard_run import RunSpec, run_shard

_HOME_OF = {
    "CheckSpec": "shard_check",
    "RenderSpec": "shard_render",
    "RunSpec": "shard_run",
    "check_shard": "shard_check",
    "merge_rendered": "render_job",
    "plan_shards": "plan",
    "render_shard": "shard_render",
    "render_specs": "render_job",
    "run_shard": "shard_run",
}

__all__ = [
    "CheckSpec",
    "RenderSpec",
    "RunSpec",
    "check_shard",
    "merge_rendered",
    "plan_shards",
    "render_shard",
    "render_specs",
    "run_shard",
]


def __getattr__(name: str) -> object:
    """Load a public name from its home."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'mmprompt.scale' has no attribute '{name}'")
    import importlib  # noqa: PLC0415  # paid by the first use

    value = getattr(importlib.import_module(f"mmprompt.scale.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
