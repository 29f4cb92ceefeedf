"""The dataset and the retriever: rows of any format the core reads, and examples picked by the core's retrievers."""

from __future__ import annotations

from typing import Any

from mmprompt.plugins.aisbench.template_classes import runner_list, runner_logger
from mmprompt.plugins.bridge.opencompass_family import dataset_class, retriever_class


class MMPromptDataset:
    """The rows of a dataset or of a task, for AISBench: ``id``, the output column, and one column for our templates.

    Args:
        path: a task file, or a dataset of any format.
        train: the file that holds the examples; of a task, its own.
        format: the dataset's format, where its content does not tell.
        output_column: the column of the answers; of a task, its own.
        task_abbr: chooses among the datasets of a runner's config.
        options: AISBench's own, such as ``reader_cfg``, ``abbr``, ``k`` and ``n``.

    A row that cannot be read ends the run before it begins.
    """

    def __new__(cls, **options: Any) -> Any:
        """Return an instance of a class that is made when AISBench is there to inherit from."""
        return dataset_class("ais_bench.benchmark.datasets.base", runner_logger)(**options)


class MMPromptRetriever:
    """A retriever of mmprompt for AISBench.

    Args:
        kind: ``"BM25Retriever"``, ``"TopkRetriever"``, ``"SlidingWindowRetriever"``, ``"RandomRetriever"``,
            ``"FixKRetriever"`` or ``"ZeroRetriever"``.
        arguments: those of the retriever.
        options: AISBench's own: ``dataset``, ``ice_template``, ``prompt_template``.
    """

    def __new__(cls, **options: Any) -> Any:
        """Return an instance of a class that is made when AISBench is there to inherit from."""
        return retriever_class("ais_bench.benchmark.openicl.icl_retriever", runner_list)(**options)
