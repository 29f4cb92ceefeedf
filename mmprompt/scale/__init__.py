"""Datasets in shards: each is rendered, checked or run alone, on any engine, and the outputs are merged in order."""

from __future__ import annotations

from mmprompt.scale.check_shard import CheckSpec, check_shard
from mmprompt.scale.plan import plan_shards
from mmprompt.scale.render_job import merge_rendered, render_specs
from mmprompt.scale.render_shard import RenderSpec, render_shard
from mmprompt.scale.run_shard import RunSpec, run_shard

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
