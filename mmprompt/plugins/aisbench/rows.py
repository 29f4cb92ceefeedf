"""The dataset and the retriever: rows of any format that we read, and examples picked by our retrievers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mmprompt.plugins.aisbench.template_classes import runner_list, runner_logger
from mmprompt.plugins.bridge.opencompass_family import dataset_class, retriever_class
from mmprompt.targets.json_values import JSONValue

if TYPE_CHECKING:
    from ais_bench.benchmark.datasets.base import BaseDataset
    from ais_bench.benchmark.openicl.icl_retriever import BaseRetriever


class MMPromptDataset:
    """The rows of a dataset or of a task, for AISBench: ``id``, the output column, and one column for our templates.

    Args:
        path: a task file, or a dataset of any format. A task file names its own examples, format and output column.
        train: the file that holds the examples.
        format: the dataset's format, if its content does not show it.
        output_column: the column of the answers.
        task_abbr: chooses one of the datasets of a runner's config.
        infer_mode: that of ``MultiTurnGenInferencer``, for a dataset of dialogues; the answer is then that of the turn
            which AISBench scores. A task file says it itself.
        media_root: a folder that the task file may name in ``media.roots``, or several.
        options: AISBench's own, such as ``reader_cfg``, ``abbr``, ``k`` and ``n``.

    A row that cannot be read ends the run before it begins.
    """

    def __new__(cls, **options: JSONValue) -> BaseDataset:
        """Return an instance of a class that inherits from AISBench's, which is imported here."""
        return dataset_class("ais_bench.benchmark.datasets.base", runner_logger)(**options)


class MMPromptRetriever:
    """A retriever of mmprompt for AISBench.

    Args:
        kind: ``"BM25Retriever"``, ``"TopkRetriever"``, ``"SlidingWindowRetriever"``, ``"RandomRetriever"``,
            ``"FixKRetriever"`` or ``"ZeroRetriever"``.
        arguments: those of the retriever.
        options: AISBench's own: ``dataset``, ``ice_template``, ``prompt_template``.
    """

    def __new__(cls, **options: Any) -> BaseRetriever:
        """Return an instance of a class that inherits from AISBench's, which is imported here."""
        return retriever_class("ais_bench.benchmark.openicl.icl_retriever", runner_list)(**options)
