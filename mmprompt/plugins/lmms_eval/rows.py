"""lmms-eval's task class ``Rows``: the rows of a task file or dataset, each as a marker of its request."""

from __future__ import annotations

from typing import Any

from datasets import Dataset, DatasetDict
from lmms_eval.api.task import ConfigurableMessagesTask

from mmprompt.plugins.bridge.harness_rows import harness_rows, marker_alone, runner_ended


class Rows(ConfigurableMessagesTask):  # type: ignore[misc]  # the runner is absent when types are checked
    """The rows that ``dataset_kwargs`` in a task's YAML name."""

    def __init__(self, config: dict[str, Any]) -> None:
        with runner_ended():
            self._rows = harness_rows(config, config.get("dataset_kwargs") or {}, "dataset_kwargs: {{{name}: {value}}}")
        super().__init__(config=self._rows.config)

    def download(self, dataset_kwargs: object = None) -> None:  # noqa: ARG002  # lmms-eval's signature
        """Put the rows in the place of a dataset."""
        self.dataset = self.dataset_no_image = DatasetDict({"test": Dataset.from_dict(self._rows.columns)})

    def fewshot_context(self, doc: dict[str, str], _shots: int = 0, system: object = None, *_: Any) -> str:
        """Return a row's marker as the whole prompt."""
        with runner_ended():
            return marker_alone(doc, "mmprompt", system)
