"""Samples as tables of text columns, for runners that keep rows in Arrow, and samples found again from such rows.

Arrow gives each column one type and each hole a null. So a sample travels as one column of JSON text, beside its id
and its answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from mmprompt._log import log
from mmprompt.datasets.read import Dataset
from mmprompt.datasets.row_ids import id_of
from mmprompt.datasets.sample import Sample
from mmprompt.errors import MMPromptError, RowError, TaskError, nearest, shown
from mmprompt.segments import Segment
from mmprompt.tasks.files import is_task_file
from mmprompt.tasks.load import load_task
from mmprompt.tasks.task import Task
from mmprompt.templates.sample_view import SampleView, view_of

CARRIED = "mmprompt"
"""The column that holds the sample."""

_READ_FROM_ROWS: Mapping[str, type] = {"cont": str, "choices": list}
"""Columns that inferencers read from a row themselves: a continuation to be scored, and the choices there are."""


class RowRecord(NamedTuple):
    """What a row carries of its sample; ``list_cells`` as in ``SampleView``, ``chat`` tells that it is messages.

    ``segments`` names the columns that are lists of segments, which JSON has no type for.
    """

    row: int
    columns: Mapping[str, object]
    scanned: bool
    list_cells: bool
    chat: bool
    segments: Sequence[str] = ()


def tables(
    path: str,
    train: str | None = None,
    format: str | None = None,  # noqa: A002  # the word users know
    output_column: str = "answer",
    task_abbr: str | None = None,
    **unknown: object,
) -> dict[str, dict[str, list[Any]]]:
    """Return the columns of the splits ``train``, the examples (where none are named, the test rows), and ``test``.

    ``path`` is a dataset, or a task file, which then says the rest. ``task_abbr`` chooses among a config's datasets.

    Raises:
        TaskError: further arguments, as a runner hands on whatever its config says.
        RowError: a row that cannot be read, or that holds objects.
        MMPromptError: what ``load_task`` raises.
    """
    for name in unknown:
        hint = nearest(name, ("train", "format", "output_column", "task_abbr"))
        raise TaskError(f"MMPromptDataset takes no argument {shown(name)}", hint)
    if is_task_file(path):
        task = load_task(path, abbr=task_abbr)
    else:
        given = {"path": path, "train": train, "format": format}
        dataset = {name: value for name, value in given.items() if value is not None}
        task = load_task({"dataset": dataset, "reader_cfg": {"output_column": output_column}})
    test = _table(task.samples(), task, task.dataset)
    if not test["id"]:
        log.warning("there is no row to ask")
    return {"train": test if task.train is None else _table(task.train, task, task.train), "test": test}


def _table(rows: Iterable[Sample | RowError], task: Task, dataset: Dataset | None) -> dict[str, list[Any]]:
    samples: list[Sample] = []
    for row in rows:
        if isinstance(row, RowError):
            raise row
        samples.append(row)
    for note in () if dataset is None else dataset.notes:
        log.warning("%s", note)
    found = {name: [sample.columns.get(name) for sample in samples] for name in _READ_FROM_ROWS}
    return {
        **{name: cells for name, cells in found.items() if cells and all(_is_texts(c, name) for c in cells)},
        "id": [sample.label for sample in samples],
        task.output_column: [_answer(sample.columns.get(task.output_column)) for sample in samples],
        CARRIED: [row_text(sample, dataset) for sample in samples],
    }


def _is_texts(cell: object, name: str) -> bool:
    texts = cell if isinstance(cell, list) else [cell]
    return isinstance(cell, _READ_FROM_ROWS[name]) and all(isinstance(text, str) for text in texts)


def row_text(sample: Sample, dataset: Dataset | None) -> str:
    """Return the JSON text that carries a sample in a table.

    Raises:
        RowError: the row holds an object that JSON cannot.
    """
    cells = dataset is not None and dataset.format in ("csv", "tsv")
    columns = sample.columns
    segments = [name for name, value in columns.items() if isinstance(value, list) and _is_segments(value)]
    kept = RowRecord(sample.row, columns, sample.scanned, cells, sample.messages is not None, segments)
    try:
        return json.dumps(kept._asdict())
    except TypeError as error:
        what = f"the row holds what no table of texts can: {error}"
        raise sample.located(RowError(what, "name media by path, URL or data URI")) from None


def _is_segments(value: list[object]) -> bool:
    return bool(value) and all(isinstance(item, Segment) for item in value)


def _answer(value: object) -> str | None:
    """Return an answer in the one type that a column has: text as it is, what is no text as JSON, None for none."""
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def carried(row: Mapping[str, Any]) -> RowRecord | None:
    """Return what a row of a table carries, None for a row of another dataset.

    Raises:
        RowError: the column holds something else.
    """
    text = row.get(CARRIED)
    if text is None:
        return None
    try:
        kept = RowRecord(**json.loads(text))
        held = {name: [Segment(*fields) for fields in kept.columns[name]] for name in kept.segments}  # type: ignore[attr-defined]
        return kept._replace(columns={**kept.columns, **held}) if held else kept
    except (TypeError, ValueError):
        what = f"the column '{CARRIED}' holds no sample"
        raise RowError(what, f"give the column '{CARRIED}' another name") from None


@contextmanager
def entry_of_row(row: Mapping[str, Any], hidden: str | None = None, hidden_as: str = "") -> Iterator[SampleView]:
    """Give a row as templates see it: its sample, or the row itself where it is of another dataset.

    The column ``hidden``, if the row has it, reads as ``hidden_as``. Errors in the block get the row's number and id,
    as far as it tells them.

    Raises:
        RowError: a chat, which is a prompt already.
    """
    kept = carried(row)
    entry = (
        SampleView(row) if kept is None else SampleView(kept.columns, scanned=kept.scanned, list_cells=kept.list_cells)
    )
    try:
        if kept is not None and kept.chat:
            raise RowError("the row is a chat already, and a template would replace it", "use MMPromptTask")
        yield entry.with_columns({hidden: hidden_as}) if hidden and hidden_as else view_of(entry, hidden or None)
    except MMPromptError as error:
        name = id_of(entry.raw, None)
        line = None if kept is None else kept.row + 1
        raise error.located(line=line, sample=None if name is None else str(name)) from None


def sample_of_row(row: Mapping[str, Any], number: int) -> Sample:
    """Return a row as retrievers compare it; ``number`` is its place in the table, where it does not tell its own."""
    kept = carried(row)
    if kept is None:
        return Sample(row, id_of(row, number), None, None, number, scanned=True)
    return Sample(kept.columns, id_of(kept.columns, kept.row), None, None, kept.row, scanned=kept.scanned)
