"""Samples as tables of text columns, for runners that keep rows in Arrow, and samples read back from such rows.

Arrow gives each column one type, and a missing cell becomes null. So a sample travels as one column of JSON text,
beside its id and its answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeGuard

from mmprompt._log import log
from mmprompt.datasets.read import Dataset
from mmprompt.datasets.sample import Sample, id_of
from mmprompt.errors import MMPromptError, RowError, TaskError, Where, nearest, shown
from mmprompt.icl.dialogues import check_mode
from mmprompt.plugins.bridge.requests import MediaRoot, open_task
from mmprompt.plugins.bridge.runner_builder import MediaSection, config_grants
from mmprompt.render.answers import RowAnswers
from mmprompt.segments import Segment
from mmprompt.targets.exact_json import finite
from mmprompt.targets.json_values import JSONValue
from mmprompt.tasks.files import is_task_file
from mmprompt.tasks.load import load_task
from mmprompt.tasks.task import Task
from mmprompt.templates.sample_view import SampleView, view_of

CARRIED = "mmprompt"
"""The column that holds the sample."""

TableRow = Mapping[str, JSONValue]
"""A row as a runner gives it to templates."""

Table = dict[str, Sequence[object]]
"""The columns of one split."""

_FAULT = "fault"

_READ_FROM_ROWS: Mapping[str, type] = {"cont": str, "choices": list}
"""Columns that inferencers read from a row themselves: the continuation to be scored, and the choices."""


class RowRecord(NamedTuple):
    """What a row carries of its sample. ``list_cells`` is as in ``SampleView``. ``chat``: the sample is messages.

    ``segments`` names the columns that are lists of segments: JSON has no type for these.
    """

    row: int
    columns: Mapping[str, object]
    scanned: bool
    list_cells: bool
    chat: bool
    segments: Sequence[str] = ()


def tables(  # noqa: PLR0917  # all of them by name, from a config
    path: str,
    train: str | None = None,
    format: str | None = None,  # noqa: A002  # the word users know
    output_column: str = "answer",
    task_abbr: str | None = None,
    infer_mode: str | None = None,
    media_root: MediaRoot = None,
    media: MediaSection | None = None,
    **unknown: object,
) -> dict[str, Table]:
    """Return the columns of the splits ``train`` (the examples; by default the test rows) and ``test``.

    A row of ``test`` that cannot be read has a place too: its error is raised where a template asks for the row.

    Args:
        path: a dataset, or a task file. A task file names its own examples, format and output column.
        train: the dataset of the examples.
        format: the dataset's format, if its content does not show it.
        output_column: the column of the answers.
        task_abbr: chooses one of the datasets of a runner's config.
        infer_mode: of a dataset of dialogues, as the runner's inferencer has it. The answer is then that of the turn
            which the runner scores: under ``last`` the last turn, otherwise the first. A task file says this itself.
        media_root: folders that the task file may name for its media; the same as in ``MMPromptTask``.
        media: what the task file may read; the same as in ``MMPromptTask``.
        unknown: further keys of the runner's config, which are refused.

    Raises:
        TaskError: a key is unknown, or ``media_root`` or ``media`` is given without a task file.
        RowError: an example cannot be read, or a row holds objects.
        MMPromptError: the task or the dataset cannot be read.
    """
    for name in unknown:
        hint = nearest(name, ("train", "format", "infer_mode", "media_root", "media", "output_column", "task_abbr"))
        raise TaskError(f"MMPromptDataset takes no argument {shown(name)}", hint)
    if is_task_file(path):
        task = open_task(path, grants=config_grants(media, media_root), abbr=task_abbr)
    else:
        if media_root is not None or media is not None:
            name = "media" if media_root is None else "media_root"
            raise TaskError(f"{name} is for a task file", "give the template media=dict(roots=[…])")
        given = {"path": path, "train": train, "format": format}
        dataset = {name: value for name, value in given.items() if value is not None}
        task = load_task({"dataset": dataset, "reader_cfg": {"output_column": output_column}})
    answer_of = _scored_answers(task, infer_mode)
    test = _table(task.samples(), task, task.dataset, answer_of)
    if not test["id"]:
        log.warning("there is no row to ask")
    return {"train": test if task.train is None else _table(task.train, task, task.train, answer_of), "test": test}


def _scored_answers(task: Task, infer_mode: str | None) -> Callable[[Sample], object]:
    """Return a function that gives the answer of a row; of a dialogue that of the one turn that the runner scores.

    AISBench scores the reply to the first turn that it asked for. ``infer_mode`` makes every row a dialogue.
    """
    arguments = {} if task.assembly is None else task.assembly.arguments
    mode = check_mode(infer_mode or arguments.get("infer_mode", "every"))
    answers = RowAnswers(task, dialogues=infer_mode is not None)
    return lambda sample: answers.value(sample, -1 if mode == "last" else 0)


def _table(
    rows: Iterable[Sample | RowError], task: Task, dataset: Dataset | None, answer_of: Callable[[Sample], object]
) -> Table:
    if dataset is not None and len(dataset.roots) > 1:  # the runner's rows do not say where their media begin
        what = "the files of the dataset lie in several folders"
        raise TaskError(what, "give the files of one folder at a time")
    found = list(rows)
    samples = [row for row in found if isinstance(row, Sample)]
    faults = [row for row in found if isinstance(row, RowError)]
    if faults and dataset is not None and dataset is task.train:
        raise faults[0]
    for note in () if dataset is None else dataset.notes:
        log.warning("%s", note.finding)
    read: Table = {}
    for name in _READ_FROM_ROWS:
        cells = [cell for sample in samples if _is_texts(cell := sample.columns.get(name), name)]
        if cells and len(cells) == len(found):
            read[name] = cells
    answers = [finite(answer_of(row)) if isinstance(row, Sample) else None for row in found]
    return {
        **read,
        "id": [row.label if isinstance(row, Sample) else str(row.where) for row in found],
        task.output_column: answers,
        CARRIED: [row_text(row, dataset) if isinstance(row, Sample) else _fault_text(row) for row in found],
    }


def _fault_text(error: RowError) -> str:
    """Return the JSON text that stands in a table for a row that cannot be read."""
    return json.dumps({_FAULT: [error.what, error.hint, error.where, error.code]})


def _is_texts(cell: object, name: str) -> TypeGuard[str | list[str]]:
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
        what = f"the row holds an object that a table of texts cannot hold: {error}"
        raise sample.located(RowError(what, "name media by path, URL or data URI", code="MM007")) from None


def _is_segments(value: list[object]) -> bool:
    return bool(value) and all(isinstance(item, Segment) for item in value)


def carried(row: TableRow) -> RowRecord | None:
    """Return what a row of our table carries; None for a row of another dataset.

    Raises:
        RowError: the row could not be read, or the column that should hold the sample holds something else.
    """
    text = row.get(CARRIED)
    if text is None:
        return None
    try:
        read = json.loads(str(text))
        if _FAULT in read:
            what, hint, where, code = read[_FAULT]
            raise RowError(what, hint, Where(*where), code)
        kept = RowRecord(**read)
        held = {name: [Segment(*fields) for fields in kept.columns[name]] for name in kept.segments}  # type: ignore[attr-defined]
        return kept._replace(columns={**kept.columns, **held}) if held else kept
    except (TypeError, ValueError):
        what = f"the column '{CARRIED}' holds no sample"
        raise RowError(what, f"give the column '{CARRIED}' another name") from None


@contextmanager
def entry_of_row(row: TableRow, hidden: str | None = None, hidden_as: str = "") -> Iterator[SampleView]:
    """Give a row as templates see it: its sample, or the row itself if it is of another dataset.

    The column ``hidden``, if the row has it, reads as ``hidden_as``. Errors in the block get the row's number and id
    if the row has them.

    Raises:
        RowError: the row is a chat, which is a prompt already.
    """
    kept = carried(row)
    entry = SampleView(row)
    if kept is not None:
        entry = SampleView(kept.columns, scanned=kept.scanned, list_cells=kept.list_cells)
    try:
        if kept is not None and kept.chat:
            raise RowError("the row is a chat already, and a template would replace it", "use MMPromptTask")
        yield entry.with_columns({hidden: hidden_as}) if hidden and hidden_as else view_of(entry, hidden or None)
    except MMPromptError as error:
        name = id_of(entry.raw, None)
        line = None if kept is None else kept.row + 1
        raise error.located(line=line, sample=None if name is None else str(name)) from None


def sample_of_row(row: TableRow, number: int) -> Sample:
    """Return a row as retrievers compare it. ``number`` is its place in the table, for rows of another dataset."""
    kept = carried(row)
    if kept is None:
        return Sample(row, id_of(row, number), None, None, number, scanned=True)
    return Sample(kept.columns, id_of(kept.columns, kept.row), None, None, kept.row, scanned=kept.scanned)


def arrow_table(table: Table) -> Table:
    """Return the columns with values that Arrow gives back as they are.

    Lists, dicts and numbers of one type stay. In a column of several types, each value that is not text becomes JSON.
    """
    return {name: values if _is_kept(values) else list(map(_text, values)) for name, values in table.items()}


def _is_kept(values: Sequence[object]) -> bool:
    import pyarrow as pa  # noqa: PLC0415  # heavy

    try:
        kept = pa.array(values).to_pylist()
    except (pa.ArrowException, OverflowError):
        return False
    return json.dumps(kept, sort_keys=True) == json.dumps(values, sort_keys=True)


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
