"""lm-eval's task class ``Rows``: the rows of a task file or dataset, each as a marker of its request."""

from __future__ import annotations

from typing import Any

from datasets import Dataset
from lm_eval.api.task import ConfigurableTask

from mmprompt.plugins.bridge.harness_rows import harness_rows, marker_alone
from mmprompt.plugins.bridge.row_options import ROW_OPTIONS


class Rows(ConfigurableTask):  # type: ignore[misc]  # the runner is absent when types are checked
    """The rows that ``dataset_kwargs`` in a task's YAML, or ``--metadata`` on the command line, name."""

    def __init__(self, config: dict[str, Any]) -> None:
        metadata = config.get("metadata") or {}  # holds the model's arguments too
        own = {name: metadata[name] for name in ROW_OPTIONS if name in metadata}
        rows = harness_rows(config, {**(config.get("dataset_kwargs") or {}), **own}, "--metadata {name}={value}")
        documents = {"test": Dataset.from_dict(rows.columns)}
        super().__init__(config={**rows.config, "custom_dataset": lambda **_: documents})

    def fewshot_docs(self) -> None:
        """Return no examples: the task file has its own."""

    def fewshot_context(self, doc: dict[str, str], *_: Any, **options: Any) -> str:
        """Return a row's marker as the whole prompt."""
        return marker_alone(doc, "mmprompt-chat", options.get("system_instruction"))
