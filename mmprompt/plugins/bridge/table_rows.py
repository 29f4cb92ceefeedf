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
from mmprompt.icl.assembly import Assembled
from mmprompt.messages import Message
from mmprompt.plugins.bridge.message_writer import MessageWriter
from mmprompt.segments import Segment
from mmprompt.tasks.files import is_task_file
from mmprompt.tasks.load import load_task
from mmprompt.tasks.prompt_items import role_item
from mmprompt.tasks.task import Task, at
from mmprompt.templates.prompt_list import PromptList
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
        CARRIED: [_text(sample, dataset) for sample in samples],
    }


def _is_texts(cell: object, name: str) -> bool:
    texts = cell if isinstance(cell, list) else [cell]
    return isinstance(cell, _READ_FROM_ROWS[name]) and all(isinstance(text, str) for text in texts)


def _text(sample: Sample, dataset: Dataset | None) -> str:
    cells = dataset is not None and dataset.format in ("csv", "tsv")
    columns = sample.columns
    segments = [name for name, value in columns.items() if isinstance(value, list) and _is_segments(value)]
    kept = RowRecord(sample.row, columns, sample.scanned, cells, sample.messages is not None, segments)
    try:
        return json.dumps(kept._asdict())
    except TypeError as error:
        what = f"the row holds what no table of texts can: {error}"
        raise at(RowError(what, "name media by path, URL or data URI"), sample) from None


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


class TaskRows:
    """The prompts of a task, asked for by rows of its own table.

    Args:
        task: a task file.
        abbr: chooses among the datasets of a runner's config.
        target: as in ``MessageWriter``.
        opener: as in ``MessageWriter``.
    """

    def __init__(self, task: str, abbr: str | None = None, target: str = "vllm", *, opener: str = "") -> None:
        self._task = load_task(task, abbr=abbr)
        self.outgoing = MessageWriter(self._task, target, opener=opener)
        self._samples: dict[int, Sample] = {}
        self._told = False

    @property
    def labels(self) -> tuple[object, ...]:
        """What the task compares, none if it asks for replies."""
        return () if self._task.assembly is None else self._task.assembly.labels

    @contextmanager
    def sample_of(self, row: Mapping[str, Any]) -> Iterator[Sample]:
        """Give the sample of a row, the media that came with its bytes checked; errors in the block get its place.

        After the first, what is worth a look in the task is logged.

        Raises:
            TaskError: the row is of another dataset.
            PolicyError: a medium is longer than ``max_bytes``.
        """
        kept = carried(row)
        if not self._samples:
            self._samples = {s.row: s for s in self._task.samples() if isinstance(s, Sample)}
        sample = None if kept is None else self._samples.get(kept.row)
        if sample is None or _text(sample, self._task.dataset) != row[CARRIED]:
            raise TaskError("the row is none of the task's dataset", "use MMPromptDataset with the same task")
        try:
            if sample.messages is not None:
                sample = sample._replace(messages=tuple(self.outgoing.received(sample.messages)))
            yield sample
        except MMPromptError as error:
            raise at(error, sample) from None
        if not self._told:
            self._told = True
            self._tell()

    def _tell(self) -> None:
        """Log what the first prompt showed of the task; what is worth a look of its dataset was told by ``tables``."""
        told = () if self._task.dataset is None else self._task.dataset.notes
        for note in self._task.notes():
            if note not in told:
                log.warning("%s", note)

    def prompt(self, sample: Sample) -> Any:
        """Return the one prompt of a sample; where the task has a meta template, its messages as items of a prompt.

        Raises:
            TaskError: the task compares labels, or asks for more than one reply.
        """
        plain = self._task.plain_messages(sample)
        if plain is not None:
            return _prompt(plain)
        made = self._assembled(sample, "gen")
        return made.prompt if self._task.meta_template.meta is None else _prompt(self._task.messages_of(made))

    def label_prompt(self, sample: Sample, label: object) -> Any:
        """Return the prompt of one label, as ``prompt``.

        Raises:
            TaskError: the task asks for a reply, or has no such label.
        """
        made = self._assembled(sample, "ppl")
        if self._task.meta_template.meta is None:
            return self._of_label(made.prompt, label)
        return _prompt(self._of_label(self._task.messages_of(made), label))

    def label_string(self, sample: Sample, label: object) -> Any:
        """Return the prompt of one label after the meta template, as ``label_prompt``."""
        return self._of_label(self._task.string_of(self._assembled(sample, "ppl")), label)

    def messages(self, sample: Sample) -> list[Message]:
        """Return the one prompt of a sample after the meta template.

        Raises:
            TaskError: as ``prompt``.
        """
        plain = self._task.plain_messages(sample)
        made: list[Message] = self._task.messages_of(self._assembled(sample, "gen")) if plain is None else plain
        return made

    def _assembled(self, sample: Sample, mode: str) -> Assembled:
        if self._task.mode != mode:
            asked, other = (
                ("compares labels", "PPLInferencer") if mode == "gen" else ("asks for a reply", "GenInferencer")
            )
            raise TaskError(f"the task {asked}", f"use the runner's {other}")
        made = self._task.assembled(sample)
        if len(made) != 1 or (self._task.assembly is not None and self._task.assembly.needs_replies):
            hint = "use infer_mode last, or give the runner a template of turns"
            raise TaskError("the task asks for more than one reply to a row", hint)
        return made[0]

    @staticmethod
    def _of_label(by_label: Any, label: object) -> Any:
        if label not in by_label:
            raise TaskError(f"the task has no label {shown(label)}", nearest(label, by_label))
        return by_label[label]


def _prompt(messages: Iterable[Message]) -> PromptList:
    """Return messages as a prompt, their parts as the values they are."""
    return PromptList({**role_item(m._replace(parts=())), "prompt": list(m.parts)} for m in messages)
