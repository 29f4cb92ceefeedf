"""The in-context examples of a task: the rows of its training set, bound to what chooses among them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from mmprompt.errors import RowError, TaskError
from mmprompt.icl.assembly import Assembly

if TYPE_CHECKING:
    from mmprompt.datasets.read import Dataset
    from mmprompt.datasets.sample import Sample


def bind_examples(assembly: Assembly, dataset: Dataset | None, train: Dataset | None, chosen: slice) -> None:
    """Read the rows ``chosen`` of the training set, if the task takes examples from it.

    Without any dataset nothing is bound: the task can still be compiled, and a dataset given later.

    Raises:
        TaskError: the retriever needs examples, and the task names no file of them.
        RowError: an example that cannot be read.
    """
    if not assembly.needs_examples or (train is None and dataset is None):
        return
    if train is None:
        name = type(assembly.retriever).__name__
        raise TaskError(f"{name} needs examples", "give dataset.train, their file (--train FILE), or train_rows")
    rows: list[Sample] = []
    for row in itertools.islice(train, chosen.start, chosen.stop, chosen.step):
        if isinstance(row, RowError):
            raise row
        rows.append(row)
    assembly.over(rows, train.root if dataset is None or train.root != dataset.root else None)
