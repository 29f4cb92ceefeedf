"""Lines: the requests of each row as JSON lines, or its prompt or string.

One row in, one line out (one a turn for dialogues), in order. A bad row is an error, and the rows after it go on.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from mmprompt.datasets.openai_chat import own_settings
from mmprompt.datasets.sample import Row, Sample
from mmprompt.errors import TargetError, TaskError, nearest, shown
from mmprompt.errors.findings import Note
from mmprompt.messages import Message
from mmprompt.render.answers import RowAnswers
from mmprompt.render.builder import FAULTS, FailedRow, PreparedRow, RequestBuilder, RowRequests, failed, prepared_rows
from mmprompt.render.media import media_of, no_room, notes_of
from mmprompt.render.settings import RequestSettings, batch_settings, no_model
from mmprompt.render.wire_request import LinesTogether, RenderedRow, RowLines, WireRequest
from mmprompt.targets.limits import limits
from mmprompt.targets.wire_json import batch_line, content_of, custom_id, keyed, labelled, record_chunks
from mmprompt.tasks.shard_task import rows_of
from mmprompt.tasks.task import Task

if TYPE_CHECKING:
    from mmprompt.datasets.repeated_ids import IdFile, RepeatedIds
    from mmprompt.icl.assembly import Assembled
    from mmprompt.media.cache.cache import MediaCache
    from mmprompt.media.changes import Changes
    from mmprompt.media.policy import MediaPolicy

_new = tuple.__new__  # half the time of the class, and this runs for every row
EMITS = ("messages", "prompt", "string", "batch")

Record = dict[str, Any]


class Renderer:
    """Renders the rows of a task as lines for one target. Safe to share between threads.

    Args:
        task: the task, or a dataset's default one.
        emit: ``"messages"``, ``"prompt"`` (before the meta template), ``"string"`` (after it) or ``"batch"`` (OpenAI's
            batch files, for ``"vllm"`` and ``"openai"``; the task names the model).
        target: as in ``RequestBuilder``, like ``media``, ``policy``, ``changes`` and ``cache``.
        chunks: writes a record as a line, in the place of ``record_chunks``.
        formed: as in ``RequestBuilder``.

    Raises:
        TaskError: ``emit`` is unknown, or a batch is asked for without a model or of a task that compares labels.
        TargetError: the target is unknown, or has no such lines.
        PolicyError: a root is not a folder.
    """

    def __init__(
        self,
        task: Task,
        *,
        emit: str = "messages",
        target: str = "vllm",
        media: str | None = None,
        policy: MediaPolicy | None = None,
        changes: Changes | None = None,
        cache: MediaCache | None = None,
        chunks: Callable[..., list[bytes]] = record_chunks,
        formed: bool = True,
    ) -> None:
        if emit not in EMITS:
            raise TaskError(f"unknown emit {shown(emit)}", nearest(emit, EMITS))
        self.builder = RequestBuilder(
            task,
            target,
            media=media,
            policy=policy,
            changes=changes,
            cache=cache,
            bounded=emit != "prompt",
            formed=formed,
        )
        reader = self.builder.media.reader
        self.settings: tuple[object, ...] = (emit, target, reader.mode, reader.policy, changes)
        self._task, self._ahead = task, True
        self._emit = emit
        self._chunks = chunks
        self._as_list = emit == "messages" and limits(target).wire in ("openai", "hf")
        self._plain = self._as_list and task.assembly is None
        self._answer = task.output_column if emit != "batch" else None
        self._answers = RowAnswers(task)
        self._batch = batch_settings(task, target) if emit == "batch" else None
        self._silent = self._batch is None and chunks is record_chunks  # only rows with media have notes
        self._by_line = emit == "messages" and self._silent and task.mode != "ppl"
        self.prepare: Callable[[Row], RowRequests | RowLines] = self._prepare_text
        if emit in ("messages", "batch"):
            self.prepare = self.builder.prepare_line if self._by_line else self.builder.prepare

    @property
    def task(self) -> Task:
        """The task whose rows it renders."""
        return self._task

    def over(self, task: Task, *, ahead: bool = True) -> Renderer:
        """Return the renderer for the rows of ``task``, which is this one for a shard of its dataset.

        Without ``ahead`` no row is taken before the one before it is prepared.
        """
        renderer = copy.copy(self)
        renderer._task, renderer._ahead = task, ahead  # noqa: SLF001  # of our own class
        return renderer

    @property
    def rows(self) -> slice:
        """Which rows of the dataset the task takes."""
        return rows_of(self._task)

    @property
    def file(self) -> str | None:
        """The dataset's file, for messages about lines of it."""
        return None if self._task.dataset is None else self._task.dataset.path

    @property
    def in_batch(self) -> bool:
        """Whether requests are lines of a batch, whose results are joined by id."""
        return self._batch is not None

    def remembering(self, ids: RepeatedIds | IdFile) -> Callable[[Sequence[object], Sequence[int]], None]:
        """Return a function that stores ids and their places; in a batch the ids 2 and "2" are the same."""
        if self._batch is None:
            return ids.add_all
        return lambda names, places: ids.add_all([_batch_name(name) for name in names], places)

    def close(self) -> None:
        """End the decoding processes; the renderer can be used again."""
        self.builder.close()

    def prepared(
        self, rows: Iterator[Row], workers: int, *, ahead: bool
    ) -> AbstractContextManager[Iterator[RowRequests | RowLines | LinesTogether]]:
        """Return a context that gives the prepared rows, as ``prepared_rows`` does.

        ``ahead``: several rows may be read before the first of them is prepared.
        """
        dataset = self._task.dataset
        is_file = dataset is not None and dataset.path is not None and not dataset.reads_once  # none waits for its rows
        together = self.builder.prepare_lines if ahead and self._ahead and is_file and self._by_line else None
        return prepared_rows(self.builder, self.prepare, rows, workers, together)

    def render(self, row: Row) -> RenderedRow | FailedRow:
        """Render one row. Errors are returned with their place, not raised."""
        made = self.finish(self.prepare(row))
        return made if isinstance(made, FailedRow) else RenderedRow(*made)

    def finish(self, prepared: RowRequests | RowLines) -> RowLines | FailedRow:
        """Return the lines of a prepared row."""
        if type(prepared) is not PreparedRow:
            return prepared  # type: ignore[return-value]  # it is done or failed; isinstance takes longer
        row, requests = prepared
        chunks: list[bytes] = []
        try:
            records = self._records(row, requests)
            answered = self._answer in row.columns
            for record in records:
                if answered:
                    record["answer"] = self._answers.value(row, record.get("turn"))
                chunks += self._chunks(record, newline=True)
        except FAULTS as error:
            return failed(row, error)
        plain = self._silent and len(chunks) == len(records)  # no media stand between the pieces
        return row, chunks, () if plain else self._notes(requests)

    def _notes(self, requests: Sequence[WireRequest]) -> list[Note]:
        """Return the notes on the media of a row, and in a batch on examples that were left out."""
        notes = []
        if self._batch is not None:
            notes = [no_room(request.dropped) for request in requests if request.dropped]
        return [*notes, *notes_of([part for request in requests for part in media_of(request.wire)])]

    def _records(self, row: Sample, requests: Sequence[WireRequest]) -> list[Record]:
        """Return the records of the lines: one for each turn, those of all labels together in one."""
        if self._plain:  # one request a row, of no turn or label
            return [{"id": row.id, "messages": requests[0].wire}]
        if self._emit in ("prompt", "string"):
            return [_record(row, request, request.wire) for request in requests]
        if self._batch is not None:
            return [_batch_record(row, request, self._batch) for request in requests]
        if self._task.mode == "ppl":
            return [_record(row, requests[0], labelled({str(r.label): r.wire for r in requests}))]
        return [_record(row, request, keyed(request.wire)) for request in requests]

    def _prepare_text(self, row: Row) -> RowRequests:
        """Return the prompt of a row, or its string, in place of its requests."""
        if not isinstance(row, Sample):
            return FailedRow(row, row)
        put = self._prompt if self._emit == "prompt" else self._string
        try:
            sample = self.builder.received(row, change=self._emit != "prompt")
            made = self.builder.assembled(sample)
            return PreparedRow(sample, [WireRequest(put(sample, one), one.turn, None, one.dropped) for one in made])
        except FAULTS as error:
            return failed(row, error)

    def _prompt(self, _sample: Sample, made: Assembled) -> Record:
        from mmprompt.tasks.prompt_items import plain_prompt  # noqa: PLC0415  # loads with the first prompt

        return {"prompt": plain_prompt(made.prompt, self.builder.media.reader)}

    def _string(self, sample: Sample, made: Assembled) -> Record:
        string = self._task.string_of(made)
        media: Any
        if isinstance(string, Mapping):
            record: Record = {"string": {str(label): str(s) for label, s in string.items()}}
            media = {str(label): beside for label, s in string.items() if (beside := self._beside(sample, s))}
        else:
            record = {"string": str(string)}
            media = self._beside(sample, string)
        return {**record, "media": media} if media else record

    def _beside(self, sample: Sample, string: object) -> Any:
        """Return the content parts of the media beside a string; None if it has no media."""
        media = getattr(string, "media", ())
        return content_of(self.builder.wire(sample, [Message("user", media)], in_place=True)) if media else None


def _batch_name(name: object) -> object:
    """Return the name of a row in a batch; an id that no batch can hold stays, as its row is left out."""
    try:
        return custom_id(name)
    except TargetError:
        return name


def _batch_record(row: Sample, request: WireRequest, settings: RequestSettings) -> Record:
    """Return a batch line. Of a row that was a batch line, all but the messages stays.

    Raises:
        TaskError: neither the row nor the task names a model.
    """
    own = own_settings(row)
    address = {} if own is None else {key: row.columns[key] for key in ("method", "url") if key in row.columns}
    body = settings.body(request.wire, request.turn, own=own)
    if "model" not in body:
        raise no_model()
    return {**batch_line(row.id, request.turn, body), **address}


def _record(row: Sample, request: WireRequest, keys: Record) -> Record:
    record: Record = {"id": row.id} if request.turn is None else {"id": row.id, "turn": request.turn}
    record.update(keys)
    if request.dropped:
        record["dropped_examples"] = request.dropped
    return record
