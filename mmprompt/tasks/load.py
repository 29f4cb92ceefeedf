"""Loading a task: from a task file, a mapping, or a dataset alone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mmprompt.errors import DatasetError, TaskError, TemplateError, expect
from mmprompt.errors.findings import Note
from mmprompt.messages import MODALITIES
from mmprompt.tasks.config import KEYS, DatasetSection, TaskConfig, task_config
from mmprompt.tasks.default_prompt import SYSTEM
from mmprompt.tasks.examples import CountTokens, Encoder, takes_examples, token_counter
from mmprompt.tasks.files import TaskFile, TypedPath, is_task_file, read_task_file
from mmprompt.tasks.grants import (
    Grants,
    check_files,
    dataset_paths,
    folder_notes,
    granted_config,
    refuse_pipes,
    require_inside,
)
from mmprompt.tasks.section_values import ConfigValue
from mmprompt.tasks.task import Task

if TYPE_CHECKING:
    from mmprompt.datasets.read import Dataset
    from mmprompt.media.policy import MediaPolicy

_NOTHING_GRANTED = Grants()
_ROWS = 'of rows, load_task({}, {"rows": rows}) makes a task'


def load_task(
    task: str | os.PathLike[str] | Mapping[str, Any],
    dataset: Any = None,
    *,
    tokenizer: Encoder | CountTokens | None = None,
    abbr: str | None = None,
    policy: MediaPolicy | None = None,
) -> Task:
    """Load a task: from a task file (YAML, TOML, JSON or Python), a mapping, or a dataset alone.

    A file of YAML, TOML or JSON may come from a stranger, so by itself it opens the folders of the datasets it names
    and roots inside its own folder. Further roots, hosts, formats and higher limits need the caller's ``policy``. A
    mapping and a Python file are the caller's own and may allow themselves everything.

    Args:
        task: the file or mapping. A relative path in a task file begins at that file. A dataset gives the default
            task: each row is one user message, see ``dataset_task``. A task YAML of lm-eval or lmms-eval is a task,
            whose rows ``dataset`` replaces. A dataset config of OpenCompass or AISBench in Python is a task too; its
            rows are given by ``dataset``.
        dataset: replaces the task's own rows: a path, or a mapping with ``path`` or ``rows``.
        tokenizer: counts tokens for ``max_seq_len``: a Hugging Face tokenizer, or a function from text to a number.
        abbr: which dataset to take, if a runner's config lists several.
        policy: which media its requests may read; by default those below the dataset's folder, as the task says.

    Raises:
        TaskError: the file or mapping is not a task; an unknown key comes with the nearest known one. Or a task file
            asks for more than it can allow by itself, and there is no ``policy``.
        TemplateError: a template cannot be compiled.
        DatasetError: the dataset cannot be opened.
    """
    if isinstance(task, Mapping):
        return _task(TaskFile(task), dataset, "", tokenizer, policy, None)
    if not isinstance(task, (str, os.PathLike)):
        raise TaskError(f"a task is {type(task).__name__}", f"give a mapping, or the name of a task file; {_ROWS}")
    path = TypedPath(os.fspath(task))
    return load_file(path, dataset, Grants(decided=policy is not None), tokenizer, abbr, policy)


def load_file(  # noqa: PLR0917  # the arguments of load_task, and one more
    path: str,
    dataset: Any = None,
    grants: Grants = _NOTHING_GRANTED,
    tokenizer: Encoder | CountTokens | None = None,
    abbr: str | None = None,
    policy: MediaPolicy | None = None,
) -> Task:
    """Load a task file or a dataset; see ``load_task``. ``grants`` is what a file of data may use beyond its own.

    A Python file is executed only if ``path`` is a ``TypedPath``.
    """
    if dataset is None and abbr is None and _is_dataset(path):
        try:
            return dataset_task(path, policy=policy)
        except DatasetError:
            if not path.lower().endswith((".json", ".ini")):
                raise
    try:
        roots = grants.roots if policy is None else tuple(map(os.fspath, policy.roots))
        file = read_task_file(path, KEYS, abbr, roots)
        return _task(file, dataset, os.path.dirname(path), tokenizer, policy, grants if file.is_data else None)
    except (TaskError, TemplateError) as error:
        raise error.located(file=path) from None
    except DatasetError as error:  # of the dataset that the file names, if the caller names none
        raise error.located(file=path if error.where.file is None and dataset is None else None) from None


def _task(  # noqa: PLR0917  # what the two ways of loading have in common
    file: TaskFile,
    dataset: ConfigValue,
    base: str,
    tokenizer: Encoder | CountTokens | None,
    policy: MediaPolicy | None,
    grants: Grants | None,
) -> Task:
    """Return the task of a file's content; ``grants`` is None if the caller wrote the content."""
    if file.rows is not None:
        dataset = file.rows.section(dataset)
    elif file.upstream and dataset is None:
        raise TaskError(
            "the rows of a runner's dataset are not in its config", "give them: dataset=, or --dataset FILE"
        )
    checked = task_config(file.config, dataset, base, upstream=file.upstream)
    notes: list[Note] = [*file.notes]
    named: DatasetSection = checked.dataset if dataset is None else {}
    if grants is not None:
        if not takes_examples(checked.infer_cfg):
            named = {"path": named["path"], "join": named["join"]} if "path" in named else {}
        checked = granted_config(checked, named, base, grants)
        if grants.within is not None:
            require_inside(dataset_paths(checked.dataset), grants.within)
        refuse_pipes(dataset_paths(checked.dataset if dataset is None else {}))
    own, train = _open_datasets(checked, layouts=file.rows is None and not file.upstream)
    if grants is not None:
        judged = named if grants.within is None else ("path", "train")
        opened = [found for found, key in ((own, "path"), (train, "train")) if found is not None and key in judged]
        check_files([name for dataset in opened for name in dataset.files], checked, base, grants)
        folders = [root for dataset in opened for root in dataset.roots]
        notes += [] if grants.decided else folder_notes(named, base, folders)
    if file.rows is not None:
        own, train = file.rows.shaped(own, train)
    return Task(checked, own, train, count_tokens=token_counter(tokenizer), notes=notes, policy=policy)


def dataset_task(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,  # noqa: A002  # the word users know
    map_columns: Mapping[str, str] | None = None,
    key: str | None = None,
    join: Sequence[str] = (),
    split: str | None = None,
    encoding: str | None = None,
    policy: MediaPolicy | None = None,
) -> Task:
    """Return the task of a dataset without a task file: each row gives one user message, see ``default_messages``.

    Args:
        path: a file, a folder, a pattern such as ``data/*.parquet``, or a list of files.
        format: the name of its format; by default it is recognised from the content.
        map_columns: from column to role: ``image``, ``audio``, ``video``, ``question``, ``answer``, ``id``,
            ``choices``, ``hint`` or ``system``.
        key: the key of a JSON object under which the rows stand.
        join: files of further columns, each as ``FILE:COLUMN``; rows with an equal COLUMN belong together.
        split: which split of a folder, or of rows with a column ``split``.
        encoding: the encoding of text that is not UTF-8.
        policy: which media its requests may read; by default those below the dataset's folder.

    Raises:
        DatasetError: the dataset cannot be opened.
    """
    from mmprompt.datasets.read import open_dataset  # noqa: PLC0415  # opened on use

    hint = f"give a file, a folder, a pattern or a list of files; {_ROWS}"
    for one in path if isinstance(path, Sequence) and not isinstance(path, str) else [path]:
        place = "the dataset" if one is path else "a file of the dataset"
        expect(one, (str, os.PathLike), place, hint, DatasetError)
    opened = open_dataset(path, format=format, key=key, columns=map_columns, join=join, split=split, encoding=encoding)
    roles = (map_columns or {}).items()
    sent = {SYSTEM if role == SYSTEM else column: role for column, role in roles if role in (*MODALITIES, SYSTEM)}
    return Task(task_config({}, None, ""), opened, map_columns=sent, policy=policy)


def _is_dataset(path: str) -> bool:
    """Return whether a path names a dataset and not a task file: another file, a folder, or a pattern."""
    if os.path.isfile(path):
        return not is_task_file(path)
    return os.path.isdir(path) or any(mark in path for mark in "*?[")


def _open_datasets(config: TaskConfig, *, layouts: bool) -> tuple[Dataset | None, Dataset | None]:
    """Open the test set and the set of examples; None for one that the task does not name."""
    from mmprompt.datasets.openai_chat import LastAssistant  # noqa: PLC0415  # opened on use
    from mmprompt.datasets.read import open_dataset, rows_dataset  # noqa: PLC0415  # opened on use

    own = train = None
    section = config.dataset
    columns = section.get("columns", {})
    splits = section.get("splits", {})
    both = ("key", "encoding")
    shared: dict[str, Any] = {name: section.get(name) for name in both} | {"columns": columns}
    shared |= {"templates": True, "layouts": layouts}
    if "rows" in section:
        own = rows_dataset(section["rows"], columns, layouts=layouts)
    elif "path" in section:
        own = open_dataset(
            section["path"],
            format=section.get("format"),
            join=section.get("join", ()),
            split=splits.get("path"),
            **shared,
        )
    if "train_rows" in section:
        train = rows_dataset(section["train_rows"], columns, layouts=layouts)
    elif "train" in section:
        train = open_dataset(section["train"], split=splits.get("train"), **shared)
    for opened in (own, train):
        if opened is not None and section.get("drop_last_assistant"):
            opened.change = LastAssistant(config.output_column)
    return own, train
