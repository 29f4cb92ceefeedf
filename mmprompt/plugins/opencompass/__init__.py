"""OpenCompass: templates whose prompts are messages, and a dataset, for its configs by class or ``custom_imports``.

It has no entry points: a config imports this module, and the classes register themselves in its registries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from opencompass.registry import ICL_PROMPT_TEMPLATES, ICL_RETRIEVERS, LOAD_DATASET

from mmprompt.plugins.bridge.opencompass_family import MarkedTemplate, dataset_class, retriever_class
from mmprompt.plugins.bridge.runner_log import told_in
from mmprompt.plugins.bridge.task_rows import TaskRows
from mmprompt.plugins.opencompass.messages import NAME, MMPromptMessages, kept_whole, opencompass_logger

__all__ = ["MMPromptDataset", "MMPromptMessages", "MMPromptRetriever", "MMPromptTask", "MMPromptText"]

ICL_PROMPT_TEMPLATES.register_module(module=MMPromptMessages)


@ICL_PROMPT_TEMPLATES.register_module()
class MMPromptText(MarkedTemplate):
    """``PromptTemplate`` of mmprompt, for models that OpenCompass gives text: for labels, and its own meta template."""

    @staticmethod
    def list_class(items: Iterable[Any]) -> Any:
        """Return OpenCompass's ``PromptList`` of these items."""
        from opencompass.utils.prompt import PromptList  # noqa: PLC0415  # seconds of PyTorch, paid on use

        return PromptList(items)


@ICL_PROMPT_TEMPLATES.register_module()
class MMPromptTask:
    """A whole task of mmprompt as a template; its rows are those of ``MMPromptDataset`` with the same ``path``.

    The task's own retriever picks the examples, so the config has OpenCompass's ``ZeroRetriever``; the task's meta
    template applies. Labels give text, all else messages. The arguments are those of ``TaskRows``.
    """

    prompt_type = "raw_messages"
    ice_token = sep_token = None

    def __init__(self, task: str, abbr: str | None = None, target: str = "vllm") -> None:
        self._rows = TaskRows(task, abbr, target, runner_opens_paths=NAME)
        self.template = dict.fromkeys(self._rows.labels, "") or None

    @told_in(opencompass_logger)
    def generate_item(self, entry: Mapping[str, Any], *_: Any, **__: Any) -> list[dict[str, Any]]:
        """Return the messages of a row; its errors have the row's place."""
        with self._rows.sample_of(entry) as sample:
            return kept_whole(self._rows.messages(sample))

    @told_in(opencompass_logger)
    def generate_label_prompt_item(self, entry: Mapping[str, Any], _ice: Any, label: object, *_: Any) -> str:
        """Return the text of one label; its errors have the row's place."""
        with self._rows.sample_of(entry) as sample:
            return self._rows.label_string(sample, label)


@LOAD_DATASET.register_module()
class MMPromptDataset:
    """The rows of a dataset or a task, for OpenCompass: ``id``, the output column, and one for our templates.

    The arguments are those of ``table_rows.tables`` and OpenCompass's own, such as ``reader_cfg`` and ``abbr``.
    A row that cannot be read ends the run before it begins.
    """

    def __new__(cls, **options: Any) -> Any:
        """Return an instance of a class that is made when OpenCompass is there to inherit from."""
        return dataset_class("opencompass.datasets.base", opencompass_logger)(**options)


@ICL_RETRIEVERS.register_module()
class MMPromptRetriever:
    """A retriever of mmprompt for OpenCompass: its name is ``kind``, ``arguments`` are its own."""

    def __new__(cls, **options: Any) -> Any:
        """Return an instance of a class that is made when OpenCompass is there to inherit from."""
        return retriever_class("opencompass.openicl.icl_retriever", MMPromptText.list_class)(**options)
