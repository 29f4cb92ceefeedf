"""OpenCompass: templates whose prompts are messages, a dataset and a retriever, by class or ``custom_imports``.

OpenCompass has no entry points: a config imports this module, and the classes register themselves in its registries.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from opencompass.registry import ICL_PROMPT_TEMPLATES, ICL_RETRIEVERS, LOAD_DATASET

from mmprompt.plugins.bridge.opencompass_family import MarkedTemplate, dataset_class, retriever_class
from mmprompt.plugins.bridge.requests import MediaRoot
from mmprompt.plugins.bridge.row_faults import all_told, told
from mmprompt.plugins.bridge.runner_builder import MediaSection
from mmprompt.plugins.bridge.runner_log import warnings_to
from mmprompt.plugins.bridge.section_marks import RunnerItem, RunnerPrompt
from mmprompt.plugins.bridge.table_rows import TableRow
from mmprompt.plugins.bridge.task_rows import TaskRows
from mmprompt.plugins.opencompass.messages import (
    NAME,
    WIRES,
    CountedMessage,
    MMPromptMessages,
    kept_whole,
    opencompass_logger,
)
from mmprompt.plugins.opencompass.models import AskedModel
from mmprompt.targets.json_values import JSONValue

if TYPE_CHECKING:
    from opencompass.datasets.base import BaseDataset
    from opencompass.openicl.icl_retriever import BaseRetriever

__all__ = ["MMPromptDataset", "MMPromptMessages", "MMPromptRetriever", "MMPromptTask", "MMPromptText"]

ICL_PROMPT_TEMPLATES.register_module(module=MMPromptMessages)


@ICL_PROMPT_TEMPLATES.register_module()
class MMPromptText(MarkedTemplate):
    """``PromptTemplate`` of mmprompt, for tasks of labels and for models whose meta template is OpenCompass's own."""

    @staticmethod
    def list_class(items: Iterable[RunnerItem]) -> list[RunnerItem]:
        """Return OpenCompass's ``PromptList`` of these items."""
        from opencompass.utils.prompt import PromptList  # noqa: PLC0415  # loads PyTorch, which takes seconds

        made: list[RunnerItem] = PromptList(items)
        return made


@ICL_PROMPT_TEMPLATES.register_module()
class MMPromptTask:
    """A whole task of mmprompt as a template; its rows are those of ``MMPromptDataset`` with the same ``path``.

    The task's own retriever picks the examples, so the config names OpenCompass's ``ZeroRetriever``. The task's meta
    template applies. A task that compares labels gives text, every other task messages. The arguments are those of
    ``TaskRows``.
    """

    prompt_type = "raw_messages"
    ice_token = sep_token = None

    @told
    def __init__(
        self,
        task: str,
        abbr: str | None = None,
        target: str = "vllm",
        *,
        media_root: MediaRoot = None,
        media: MediaSection | None = None,
    ) -> None:
        self._rows = TaskRows(task, abbr, target, media_root=media_root, media=media, opens_paths=NAME, wires=WIRES)
        self._model = AskedModel(target)
        self.template = dict.fromkeys(self._rows.labels, "") or None

    @all_told
    @warnings_to(opencompass_logger)
    def generate_item(
        self, entry: TableRow, *_: RunnerPrompt | None, **__: RunnerPrompt | None
    ) -> list[CountedMessage]:
        """Return the messages of a row; its errors have the row's place."""
        with self._rows.sample_of(entry) as sample:
            return kept_whole(self._rows.messages(sample), self._model)

    @all_told
    @warnings_to(opencompass_logger)
    def generate_label_prompt_item(self, entry: TableRow, _ice: RunnerPrompt, label: JSONValue, *_: JSONValue) -> str:
        """Return the text of one label; its errors have the row's place."""
        with self._rows.sample_of(entry) as sample:
            return self._rows.label_string(sample, label)


@LOAD_DATASET.register_module()
class MMPromptDataset:
    """The rows of a dataset or a task, for OpenCompass: ``id``, the output column, and one for our templates.

    The arguments are those of ``table_rows.tables`` and OpenCompass's own, such as ``reader_cfg`` and ``abbr``.
    A row that cannot be read ends the run before it begins.
    """

    def __new__(cls, **options: JSONValue) -> BaseDataset:
        """Return an instance of a class that inherits from OpenCompass's, which is imported here."""
        return dataset_class("opencompass.datasets.base", opencompass_logger)(**options)


@ICL_RETRIEVERS.register_module()
class MMPromptRetriever:
    """A retriever of mmprompt for OpenCompass: ``kind`` is its name, ``arguments`` are its arguments."""

    def __new__(cls, **options: Any) -> BaseRetriever:
        """Return an instance of a class that inherits from OpenCompass's, which is imported here."""
        return retriever_class("opencompass.openicl.icl_retriever", MMPromptText.list_class)(**options)
