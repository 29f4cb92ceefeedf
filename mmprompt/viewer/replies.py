"""What a journal says of each row: replies, errors and scores; and the task that the journal is of."""

from __future__ import annotations

import os
import sys
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mmprompt.datasets.openai_chat import LastAssistant
from mmprompt.errors import TaskError, shown
from mmprompt.run.journal import JournalLine, parsed_line, placed_lines
from mmprompt.run.manifest import manifest_path, read_manifest
from mmprompt.run.scorers import Scorer, answers_of, scorer_of
from mmprompt.targets.json_values import JSONValue
from mmprompt.tasks.load import dataset_task, load_task
from mmprompt.tasks.task import Task

_SHOWN = (
    "turn",
    "label",
    "repeat",
    "prediction",
    "error",
    "perplexity",
    "usage",
    "seconds",
    "attempts",
    "finish_reason",
)


class Replies:
    """The lines of a journal by row, each with the score of its prediction.

    A row takes 16 bytes of memory: where its lines begin is kept, and they are read again when they are shown.

    Raises:
        TaskError: the file is not a journal, or its manifest names an unknown scorer.
        OSError: it cannot be read.
    """

    def __init__(self, path: str) -> None:
        import numpy as np  # noqa: PLC0415  # loads on use

        facts = read_manifest(path) if is_journal(path) else {}
        self.title = os.path.basename(path)
        self.model = facts.get("model")
        scorer, base = facts.get("scorer"), facts.get("index_base")
        self._score = scorer_of(scorer if isinstance(scorer, str) else None, base if isinstance(base, int) else None)
        self._path = path
        rows, places = array("q"), array("q")
        for place, line in placed_lines(path):
            if 0 <= line.row <= sys.maxsize:  # no dataset has others
                rows.append(line.row)
                places.append(place)
        found = np.array(rows, dtype=np.int64)
        order = np.argsort(found, kind="stable")
        self._rows = found[order]
        self._places = np.array(places, dtype=np.int64)[order]

    def of(self, row: int) -> list[dict[str, JSONValue]]:
        """Return what the journal says of a row, by 0-based number.

        Raises:
            OSError: the journal is not there any more.
        """
        first, end = self._rows.searchsorted((row, row + 1)).tolist()
        shown = []
        if first < end:
            with open(self._path, "rb") as file:
                for place in self._places[first:end].tolist():
                    file.seek(place)
                    line = parsed_line(file.readline())
                    if line is not None and line.row == row:  # else another file has taken its place
                        shown.append(_shown_line(line, self._score))
        return shown


class TaskFacts(NamedTuple):
    """Where the task and the dataset of a journal are, as its manifest says; None for what has no file.

    ``read`` are the options that said how to read the rows.
    """

    task: str | None
    dataset: str | None
    read: Mapping[str, Any]


def is_journal(path: str) -> bool:
    """Return whether a file is a journal: its manifest lies beside it."""
    return os.path.isfile(manifest_path(path))


def task_of_journal(path: str) -> Task:
    """Return the task of a journal, found by its manifest.

    Raises:
        TaskError: the manifest names no file, or the task is wrong.
        DatasetError: the dataset is not there any more.
    """
    facts = facts_of(path)
    options = dict(facts.read)
    drops = options.pop("drop_last_assistant", False)
    if facts.task is not None:
        task = load_task(facts.task)
        own = None if task.dataset is None or task.dataset.path is None else os.path.abspath(task.dataset.path)
        task = task if facts.dataset in (None, own) else load_task(facts.task, facts.dataset)
    elif facts.dataset is not None:
        task = dataset_task(options.pop("path", facts.dataset), **options)
    else:
        hint = f"name the task: view TASK --journal {path}"
        raise TaskError(f"the manifest of {shown(path)} names no file of rows", hint)
    if drops and task.dataset is not None:
        task.dataset.change = LastAssistant(task.output_column)
    return task


def facts_of(path: str) -> TaskFacts:
    """Return where the task and the dataset of a journal are.

    Raises:
        TaskError: it has no manifest.
    """
    facts = read_manifest(path)
    task, dataset = facts.get("task"), facts.get("dataset")
    found = dataset if isinstance(dataset, Mapping) else {}
    rows, read = found.get("path"), found.get("read")
    return TaskFacts(
        task if isinstance(task, str) else None,
        rows if isinstance(rows, str) else None,
        _options(read) if isinstance(read, Mapping) else {},
    )


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


def _shown_line(line: JournalLine, score: Scorer) -> dict[str, Any]:
    found = {name: value for name in _SHOWN if (value := getattr(line, name)) not in (None, "", {})}
    answers: Sequence[JSONValue] = answers_of(line.answer)
    if line.prediction is not None and line.label is None and answers:
        found["score"] = float(score(line.prediction, answers, line.choices))
    if line.groups:
        found["groups"] = dict(line.groups)
    return found
