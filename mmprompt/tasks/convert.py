"""Datasets from one format to another."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import chain
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, NamedTuple

from mmprompt.datasets.choices import choices_in, every_choices, without_letters
from mmprompt.datasets.media_columns import media_column, modality_of
from mmprompt.datasets.openai_chat import own_settings
from mmprompt.datasets.output import check_apart
from mmprompt.datasets.sample import ID_COLUMNS, Row, Sample
from mmprompt.errors import DatasetError, MMPromptError, RowError, nearest, shown
from mmprompt.errors.findings import Note
from mmprompt.media.outputs import replacing
from mmprompt.media.reader import MediaReader
from mmprompt.tasks.default_prompt import hint_of
from mmprompt.tasks.load import dataset_task
from mmprompt.tasks.media import in_own_folder, task_policy
from mmprompt.templates.sample_view import CONTENT

if TYPE_CHECKING:
    from mmprompt.datasets.writers import Writing
    from mmprompt.datasets.writers.record import Record, RowSink
    from mmprompt.media.policy import MediaPolicy
    from mmprompt.tasks.task import Task

_TEXTS = ("question", "hint", "options", "choices", "candidates", "answer")
_OF_CHATS = frozenset(("messages", "content", "custom_id", "method", "url", "body", "type", "path"))
"""The columns whose content stands in the messages of a row that is a chat or has ``content``."""

_TEXT_IDS = ("csv", "tsv", "vlmevalkit", "webdataset")


OnFailed = Callable[[Row, MMPromptError, int], object]
"""Receives a row that is left out, its error with its place, and its 0-based number."""


class ConvertReport(NamedTuple):
    """How many rows were written and left out, and notes on the rest."""

    written: int
    failed: int
    notes: tuple[Note, ...] = ()


def convert_dataset(  # noqa: D417  # the arguments of dataset_task are described there
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    to: str,
    store: str | None = None,
    format: str | None = None,  # noqa: A002  # the word users know
    map_columns: Mapping[str, str] | None = None,
    key: str | None = None,
    join: Sequence[str] = (),
    split: str | None = None,
    encoding: str | None = None,
    media_roots: Sequence[str] = (),
    policy: MediaPolicy | None = None,
    on_error: Callable[[MMPromptError], None] | None = None,
) -> ConvertReport:
    """Write a dataset in another format. The arguments that are not listed here are those of ``dataset_task``.

    Args:
        source: the dataset: a file, a folder, a pattern such as ``data/*.parquet``, or a list of files.
        output: the file that is written; for ``imagefolder``, ``audiofolder`` and ``croissant`` a new folder.
        to: the format that is written, one of ``WRITERS``.
        store: media as bytes in the output (``"embed"``), as files beside it (``"files"``) or by their names
            (``"keep"``); by default bytes where the format holds them, files in a folder of media, else names.
        media_roots: further folders in which media may lie.
        policy: which media may be read, in place of the dataset's folder and ``media_roots``.
        on_error: receives the error of a row that cannot be read or held, and the row is left out; without it the
            error is raised and nothing is written.

    Raises:
        DatasetError: the format or store is unknown, the output exists as a folder, or a row cannot be held.
        MMPromptError: without ``on_error``, the first row that cannot be written, with its place.
        OSError: the output cannot be written.
    """
    with replacing(os.fspath(output)):
        task = dataset_task(
            source, format=format, map_columns=map_columns, key=key, join=join, split=split, encoding=encoding
        )
    return convert_task(
        task,
        os.fspath(output),
        to=to,
        store=store,
        mapped=frozenset(map_columns or {}),
        policy=policy or task_policy(task, roots=media_roots),
        on_failed=None if on_error is None else lambda row, error, number: on_error(error),  # noqa: ARG005
    )


def convert_task(
    task: Task,
    output: str,
    *,
    to: str,
    store: str | None,
    mapped: frozenset[str],
    policy: MediaPolicy,
    on_failed: OnFailed | None = None,
) -> ConvertReport:
    """Write the rows of a dataset's task in another format; see ``convert_dataset``. ``mapped`` columns have roles."""
    writing, chosen = _writing(to, store)
    if chosen == "keep" and task.dataset is not None and len(task.dataset.roots) > 1:
        what = "the files lie in several folders, where a name may stand for several media"
        raise DatasetError(what, "write the media: --store files, or --store embed")
    from mmprompt.datasets.writers.output_file import new_output  # noqa: PLC0415  # loads when something is written

    reader = MediaReader(policy)
    check_apart(output, task.dataset, task.train)
    folder = writing.only == "files"
    with new_output(output, folder=folder) as path:
        media = _media_store(writing, chosen, path, path if folder else os.path.dirname(path), reader)
        report = _write_rows(task, writing, media, path, mapped=mapped, on_failed=on_failed)
        if not report.written:
            raise NothingWrittenError(report)
    read = () if task.dataset is None else task.dataset.notes
    kept = _kept_names(policy.roots, output) if media.keeps_relative else []
    return report._replace(notes=(*read, *report.notes, *_text_only(task, to), *kept, *writing.notes))


def _text_only(task: Task, to: str) -> list[Note]:
    """Return a note if a format has no types, and rows of columns may have had some."""
    what = f"{to} holds text only: numbers and lists were written as text"
    had_types = task.dataset is None or task.dataset.format not in ("csv", "tsv", "vlmevalkit")
    return [Note("MM007", what)] if to in _TEXT_IDS and had_types else []


def _kept_names(roots: Sequence[str | os.PathLike[str]], output: str) -> list[Note]:
    """Return a note if relative names, which begin at ``roots``, do not exist below the folder of the output."""
    folders = list(dict.fromkeys(map(os.path.realpath, roots)))
    if not folders or os.path.dirname(os.path.realpath(output)) in folders:
        return []
    options = " ".join([f"--media-root {shlex.quote(folder)}" for folder in folders])
    hint = f"read the output with {options}, or write it with --store files"
    return [Note("MM206", "media keep their relative names", hint)]


def _writing(to: str, store: str | None) -> tuple[Writing, str]:
    """Return how a format is written, and how its media are stored.

    Raises:
        DatasetError: the format is unknown, or does not store media in this way.
    """
    from mmprompt.datasets.writers import WRITERS  # noqa: PLC0415  # loads when something is written

    if to not in WRITERS:
        raise DatasetError(f"unknown output format {shown(to)}", nearest(to, WRITERS))
    writing = WRITERS[to]
    chosen = store or writing.store
    if writing.only is not None and chosen != writing.only:
        raise DatasetError(f"{to} stores media only with --store {writing.only}", f"use --store {writing.only}")
    return writing, chosen


class NothingWrittenError(DatasetError):
    """Every row failed: nothing is left behind."""

    def __init__(self, report: ConvertReport) -> None:
        super().__init__("no row could be written", "see the errors of its rows")
        self.report = report


def _media_store(writing: Writing, store: str, path: str, beside: str, reader: MediaReader) -> Any:
    from mmprompt.datasets.writers.output_file import write_medium  # noqa: PLC0415  # loads when something is written
    from mmprompt.datasets.writers.stored_media import MediaStore  # noqa: PLC0415  # loads when something is written

    return MediaStore(path, store, writing.stored_as, reader.read, partial(write_medium, beside))


def _write_rows(
    task: Task,
    writing: Writing,
    store: Any,
    path: str,
    *,
    mapped: frozenset[str],
    on_failed: OnFailed | None,
) -> ConvertReport:
    written = failed = 0
    dropped = _DroppedSettings()
    sink: RowSink = writing.file(path)
    try:
        for row in task.samples():
            try:
                if isinstance(row, RowError):
                    raise row
                sink.write(writing.form(_record(row, task, mapped), store))
            except MMPromptError as error:
                located = error if isinstance(row, RowError) else row.located(error)
                if on_failed is None:
                    raise located from None
                on_failed(row, located, written + failed)
                failed += 1
            else:
                written += 1
                if not writing.keeps_settings:
                    dropped.add(row)
    finally:
        sink.close()
    return ConvertReport(written, failed, dropped.notes())


class _DroppedSettings:
    """Names what Batch lines say beside their messages and the format does not hold."""

    def __init__(self) -> None:
        self._rows = 0
        self._names: dict[str, None] = {}

    def add(self, row: Sample) -> None:
        own = own_settings(row)
        self._rows += bool(own)
        self._names.update(dict.fromkeys(own or ()))

    def notes(self) -> tuple[Note, ...]:
        if not self._rows:
            return ()
        named, rows = ", ".join(self._names), f"{self._rows} row{'s' * (self._rows > 1)}"
        what = f"{rows}: the Batch lines' own settings are not written ({named})"
        return (Note("MM614", what, "--to openai keeps them"),)


def _record(sample: Sample, task: Task, mapped: frozenset[str]) -> Record:
    """Return a row as writers take it."""
    from mmprompt.datasets.writers.record import Record  # noqa: PLC0415  # loads when something is written

    columns = sample.columns
    messages = in_own_folder(task.plain_messages(sample), sample)
    in_columns = sample.messages is None and CONTENT not in columns
    own_id = sample.id != sample.row or any(columns.get(name) is not None for name in ID_COLUMNS)
    answer = columns.get(task.output_column)
    question = columns.get("question")
    own = own_settings(sample)
    choices = choices_in(columns)
    texts = without_letters(choices.texts)
    again = [each.columns for each in every_choices(columns) if without_letters(each.texts) == texts]
    taken = {*mapped, *chain.from_iterable(again), *(ascii_uppercase if choices.texts else ())}
    return Record(
        sample.id if own_id else None,
        tuple(messages),
        answer,
        None if question is None or not in_columns else str(question),
        (hint_of(columns) if in_columns else "") or None,
        choices.texts,
        {name: value for name, value in columns.items() if _is_beside(name, value, sample, taken, in_columns)},
        None if own is None else {**{n: columns[n] for n in ("method", "url") if n in columns}, "body": own},
        sample.row,
    )


def _is_beside(name: str, value: object, sample: Sample, taken: Collection[str], in_columns: bool) -> bool:
    """Return whether a column is neither id, answer nor in the messages, so that it is written as it is."""
    if value is None or name in taken or name in _TEXTS or (value == sample.id and name in ID_COLUMNS):
        return False
    if media_column(name) or (not isinstance(value, str) and modality_of(value)):
        return False
    return in_columns or name not in (_OF_CHATS | sample.sent)
