"""The task of a journal: found by its manifest, or else the rows as the journal itself holds them.

A manifest may come from a stranger, and a person who opens a journal has not read it. So it is trusted less than a task
file that the caller names: it names tasks of data only, and nothing outside the folder of the journal is opened.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from mmprompt.datasets.notes import Notes
from mmprompt.datasets.openai_chat import LastAssistant
from mmprompt.datasets.read import Dataset
from mmprompt.datasets.sample import Row
from mmprompt.errors import TaskError, shown
from mmprompt.errors.findings import Note
from mmprompt.run.manifest import read_manifest
from mmprompt.tasks.config import task_config
from mmprompt.tasks.grants import Grants, OutsideError, is_special, require_inside
from mmprompt.tasks.load import dataset_task, load_file
from mmprompt.tasks.task import Task
from mmprompt.viewer.replies import Replies

HELD = "journal"
"""The format of rows that are read from a journal. They have no prompt."""


def task_of_journal(path: str, replies: Replies, dataset: str | None = None) -> Task:
    """Return the task of a journal.

    Args:
        path: the journal.
        replies: what it holds.
        dataset: the rows, where the caller names them; by default those that the manifest names, as far as they lie in
            the folder of the journal. Else the rows are those of the journal, and a note of the task says what to type.

    Raises:
        TaskError: the manifest names a Python task, or the task is wrong.
        DatasetError: the rows cannot be read.
    """
    facts = read_manifest(path)
    held, task = facts.get("dataset"), facts.get("task")
    held = held if isinstance(held, Mapping) else {}
    rows, read = held.get("path"), held.get("read")
    options = _options(read) if isinstance(read, Mapping) else {}
    drops = options.pop("drop_last_assistant", False)
    rows = rows if isinstance(rows, str) and rows else None
    try:
        if isinstance(task, str) and task:
            found = _named_task(task, rows, path, dataset)
        elif dataset is not None:
            found = dataset_task(dataset, **{name: value for name, value in options.items() if name != "path"})
        else:
            found = _named_rows(rows, options, path)
    except OutsideError as error:
        return _held_rows(path, replies, error)
    if drops and found.dataset is not None:
        found.dataset.change = LastAssistant(found.output_column)
    return found


def is_held(task: Task) -> bool:
    """Return whether the rows of a task are those of a journal alone, which have no prompt."""
    return task.dataset is not None and task.dataset.format == HELD


def _named_task(name: str, rows: str | None, journal: str, dataset: str | None) -> Task:
    """Return the task that a manifest names, over its rows or those that the caller names."""
    typed = f"type: mmprompt view {_word(name)} --journal {_word(journal)}"
    if name.lower().endswith(".py"):
        what = f"the manifest of {shown(journal)} names the Python task {shown(name)}, and no manifest runs Python"
        raise TaskError(what, f"if you trust that file, {typed}")
    folder = os.path.dirname(journal) or os.curdir
    path = _inside(name, folder, typed)
    if dataset is not None:
        return load_file(path, {"path": dataset})
    grants = Grants(within=folder)
    try:
        task = load_file(path, None, grants)
    except OutsideError:
        raise OutsideError(f"{shown(name)} names rows outside {shown(folder)}", typed) from None
    own = None if task.dataset is None or task.dataset.path is None else os.path.abspath(task.dataset.path)
    if rows is None or os.path.join(folder, rows) == own:
        return task
    return load_file(path, {"path": _inside(rows, folder, _give(rows))}, grants)


def _named_rows(rows: str | None, options: Mapping[str, Any], journal: str) -> Task:
    """Return the default task of the dataset that a manifest names."""
    if rows is None:
        what = f"the manifest of {shown(journal)} names no file of rows"
        raise OutsideError(what, f"type: mmprompt view TASK --journal {_word(journal)}")
    folder = os.path.dirname(journal) or os.curdir
    own = {**options, "path": [_inside(name, folder, _give(rows)) for name in options.get("path", [rows])]}
    joined = [name.rpartition(":") for name in options.get("join", ())]
    own["join"] = [f"{_inside(file, folder, _give(rows))}:{column}" for file, _, column in joined]
    task = dataset_task(own.pop("path"), **own)
    for name in [] if task.dataset is None else task.dataset.files:
        _inside(os.path.abspath(name), folder, _give(rows))  # the files of a folder may be links
    return task


def _inside(name: str, folder: str, hint: str) -> str:
    """Return a path that a manifest names, if it lies in a folder.

    Raises:
        OutsideError: it lies outside, or is not there.
    """
    path = os.path.join(folder, name)
    try:
        require_inside([path], folder)
    except OutsideError:
        raise OutsideError(f"{shown(name)} lies outside {shown(folder)}", hint) from None
    if not (os.path.exists(path) or any(mark in path for mark in "*?[")):
        raise OutsideError(f"{shown(name)} is not there any more", hint)
    if is_special(path):
        raise OutsideError(f"{shown(name)} is no regular file", hint)
    return path


def _held_rows(path: str, replies: Replies, error: OutsideError) -> Task:
    """Return a task over the rows as the journal holds them, with a note that says how to see their prompts."""

    def iterate(notes: Notes) -> Iterator[Row]:  # noqa: ARG001  # the journal has no notes
        return iter(replies.samples())

    note = Note("MM206", f"the rows of {shown(path)} are shown without prompts: {error.what}", error.hint)
    return Task(task_config({}, None, ""), Dataset(None, HELD, (), iterate), notes=[note])


def _give(rows: str) -> str:
    """Return the words that ask the caller to name the rows."""
    return f"pass --dataset {_word(rows)}"


def _word(path: str) -> str:
    """Return a path as a word of a command: relative to the current folder where that is shorter."""
    try:
        near = os.path.relpath(path)
    except ValueError:  # another drive, or no file name
        near = path
    return shlex.quote(shown(min(near, path, key=len))[1:-1])


def _options(read: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a manifest that are what a run writes."""
    texts = [name for name in ("format", "key", "split", "encoding") if isinstance(read.get(name), str)]
    lists = [name for name in ("path", "join") if _are_texts(read.get(name), list)]
    columns = ["map_columns"] if _are_texts(read.get("map_columns"), dict) else []
    drops = ["drop_last_assistant"] if read.get("drop_last_assistant") is True else []
    return {name: read[name] for name in (*texts, *lists, *columns, *drops)}


def _are_texts(value: Any, kind: type[list[Any] | dict[str, Any]]) -> bool:
    if not value or not isinstance(value, kind):
        return False
    return all(isinstance(each, str) for each in (value.values() if isinstance(value, dict) else value))
