"""How a task comes about: from a task file, a mapping, or a dataset alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mmprompt.errors import TaskError, TemplateError
from mmprompt.tasks.config import KEYS, task_config
from mmprompt.tasks.files import TaskFile, read_task_file
from mmprompt.tasks.prompt_items import token_counter
from mmprompt.tasks.task import Task

if TYPE_CHECKING:
    from mmprompt.datasets.read import Dataset


def load_task(
    task: str | os.PathLike[str] | Mapping[str, Any],
    dataset: Any = None,
    *,
    tokenizer: Any = None,
    abbr: str | None = None,
) -> Task:
    """Load a task from a YAML, TOML, JSON or Python file, or from a mapping.

    ``dataset`` takes the place of the task's own: a path, or a mapping with ``path`` or ``rows``. A relative path in
    a task file is relative to that file. ``tokenizer``, a Hugging Face tokenizer or a callable from text to a number
    of tokens, counts for ``max_seq_len``. A dataset config of OpenCompass or AISBench in Python is a task too: its rows
    are those of ``dataset``, and ``abbr`` chooses among several datasets.

    Raises:
        TaskError: the file or mapping is no task; unknown keys come with the nearest known one.
        TemplateError: a template cannot be compiled.
        DatasetError: the dataset cannot be opened.
    """
    if isinstance(task, Mapping):
        return _task(TaskFile(task), dataset, "", tokenizer)
    if not isinstance(task, (str, os.PathLike)):
        raise TaskError(f"a task is {type(task).__name__}", "give a mapping, or the name of a task file")
    path = os.fspath(task)
    try:
        return _task(read_task_file(path, KEYS, abbr), dataset, os.path.dirname(path), tokenizer)
    except (TaskError, TemplateError) as error:
        raise error.located(file=path) from None


def _task(file: TaskFile, dataset: Any, base: str, tokenizer: Any) -> Task:
    if file.upstream and dataset is None:
        raise TaskError(
            "the rows of a runner's dataset are not in its config", "give them: dataset=, or --dataset FILE"
        )
    checked = task_config(file.config, dataset, base)
    own, train = _open_datasets(checked.dataset or {})
    return Task(checked, own, train, count_tokens=token_counter(tokenizer), notes=file.notes)


def dataset_task(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002  # the word users know
    map_columns: Mapping[str, str] | None = None,
) -> Task:
    """Return the task of a dataset without a task file: each row gives one user message, see ``default_messages``."""
    from mmprompt.datasets.read import open_dataset  # noqa: PLC0415  # opened on use

    opened = open_dataset(os.fspath(path), format=format)
    return Task(task_config({}, None, ""), opened, map_columns=map_columns)


def _open_datasets(config: Mapping[str, Any]) -> tuple[Dataset | None, Dataset | None]:
    """Open the test set and the set that holds the examples, those of them that are named."""
    from mmprompt.datasets.read import open_dataset, rows_dataset  # noqa: PLC0415  # opened on use

    opened: list[Dataset | None] = []
    for path, rows in (("path", "rows"), ("train", "train_rows")):
        if rows in config:
            opened.append(rows_dataset(config[rows]))
        elif path in config:
            opened.append(open_dataset(config[path], format=config.get("format") if path == "path" else None))
        else:
            opened.append(None)
    return opened[0], opened[1]
