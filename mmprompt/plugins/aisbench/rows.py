"""The dataset and the retriever: rows of any format the core reads, and examples picked by the core's retrievers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from mmprompt.icl.retrievers import join_examples
from mmprompt.icl.types import build_retriever
from mmprompt.plugins.aisbench.prompts import from_runner, runner_list
from mmprompt.tables import sample_of_row, tables


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
        return _dataset_class()(**options)


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
        return _retriever_class()(**options)


@lru_cache(maxsize=1)
def _dataset_class() -> Any:
    from ais_bench.benchmark.datasets.base import BaseDataset  # noqa: PLC0415  # the runner is there now
    from datasets import Dataset, DatasetDict  # noqa: PLC0415  # likewise

    class Rows(BaseDataset):  # type: ignore[misc]  # the runner has no types
        @staticmethod
        def load(path: str, **options: Any) -> Any:
            return DatasetDict({split: Dataset.from_dict(rows) for split, rows in tables(path, **options).items()})

    return Rows


@lru_cache(maxsize=1)
def _retriever_class() -> Any:
    from ais_bench.benchmark.openicl.icl_retriever import BaseRetriever  # noqa: PLC0415  # the runner is there now

    class Retriever(BaseRetriever):  # type: ignore[misc]  # the runner has no types
        def __init__(self, kind: str = "ZeroRetriever", arguments: Mapping[str, Any] | None = None, **options: Any):
            super().__init__(**options)
            self._core = build_retriever({"type": kind, **(arguments or {})}, "retriever")

        def retrieve(self) -> list[list[int]]:
            reader = self.dataset_reader
            bound = self._core.bind(
                [sample_of_row(row, number) for number, row in enumerate(self.index_ds)],
                input_columns=tuple(reader.input_columns),
                output_column=reader.output_column,
            )
            return [bound.ids(sample_of_row(row, number), number) for number, row in enumerate(self.test_ds)]

        def generate_ice(self, idx_list: Sequence[int]) -> Any:
            items = [self.index_ds[number] for number in idx_list]
            column = self.dataset_reader.output_column
            made = [from_runner(self.ice_template.generate_ice_item(item, item[column])) for item in items]
            dialogue = any(isinstance(example, list) for example in made)
            joined = join_examples(made, self._core, dialogue)
            return joined if isinstance(joined, str) else runner_list(joined)

    return Retriever
