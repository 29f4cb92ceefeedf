"""inspect-ai: the task ``mmprompt/task``, the model provider ``mmprompt``, and datasets for tasks of one's own.

``inspect eval mmprompt/task -T path=vqa.jsonl --model mmprompt/SERVICE/MODEL`` asks any OpenAI-compatible server.
"""

from __future__ import annotations

from mmprompt.plugins.inspect_ai.messages import from_inspect, to_inspect
from mmprompt.plugins.inspect_ai.model import provider
from mmprompt.plugins.inspect_ai.task import dataset, mmprompt_task, row_score, whole

__all__ = ["dataset", "from_inspect", "mmprompt_task", "provider", "row_score", "to_inspect", "whole"]
