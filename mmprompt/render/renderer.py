"""Rendering: the rows of a task as JSON lines, each ready for a model.

One row in, one line out, in order. A bad row is reported and left out; the rows after it are rendered.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from mmprompt.errors import MediaError, MMPromptError, RowError, TargetError, TaskError, Where, nearest, shown
from mmprompt.icl.assembly import Assembled
from mmprompt.media.cache.cache import MediaCache
from mmprompt.media.changes import Changes
from mmprompt.media.policy import MediaPolicy
from mmprompt.messages import MediaRef, Message
from mmprompt.render.parallel import ahead
from mmprompt.render.rows import Prepared, Rendered, bytes_of, media_of, weight_of
from mmprompt.targets.limits import limits
from mmprompt.targets.records import batch_line, content_of, custom_id, keyed, labelled, writer_for
from mmprompt.targets.wire_json import Payload, record_chunks
from mmprompt.tasks.media import TaskMedia, UnreadError
from mmprompt.tasks.prompt_items import plain_prompt
from mmprompt.tasks.task import Task, at

if TYPE_CHECKING:
    from mmprompt.datasets.repeated_ids import RepeatedIds
    from mmprompt.datasets.sample import Sample
    from mmprompt.targets.chunk_writer import ChunkWriter

_new = tuple.__new__  # half the time of the class, and this runs for every row
EMITS = ("messages", "prompt", "string", "batch")


class RenderReport(NamedTuple):
    """What a run did: rows rendered, rows left out, and ids that came again (line, line of the first)."""

    rendered: int
    failed: int
    repeated: int


class Renderer:
    """Renders samples of a task for one target; safe to share between threads.

    Args:
        task: the task, or a dataset's default one.
        emit: ``"messages"``, ``"prompt"`` (before the meta template), ``"string"`` (after it) or ``"batch"`` (OpenAI's
            batch files, for ``"vllm"`` and ``"openai"``; the task names the model).
        target: the wire form of messages: ``"vllm"``, ``"openai"``, ``"anthropic"``, ``"gemini"``, ``"hf"``
            or a user's own.
        media: ``"inline"``, ``"file"``, ``"url"`` or ``"keep"``.
        policy: what may be read; by default paths under the dataset's directory.
        changes: what is to be changed in media; by default what the task asks for.
        cache: keeps changed media; by default some in memory.

    Raises:
        TaskError: an unknown ``emit``, or a batch without a model or of a task that is not for generation.
        TargetError: an unknown target, or one that this ``emit`` is not for.
        PolicyError: a root that is no directory.
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
    ) -> None:
        if emit not in EMITS:
            raise TaskError(f"unknown emit {shown(emit)}", nearest(emit, EMITS))
        self._task = task
        self._media = TaskMedia(task, target, mode=media, policy=policy, changes=changes, cache=cache)
        self._reader = self._media.reader
        self._write = writer_for(target, Payload, self._media.reading)
        self._sends = emit in ("messages", "batch")
        self._changes = emit != "prompt"  # which holds its media as the sample does
        self._as_list = emit == "messages" and limits(target).wire in ("openai", "hf")
        images = limits(target).modalities.get("image")
        self._max_images = images.max_count if images is not None and emit != "prompt" else None
        self._answer = task.output_column if emit != "batch" else None
        self._put = {"prompt": self._prompt, "string": self._string}.get(emit, self._messages)
        self._batch = _batch_body(task, target) if emit == "batch" else None

    @property
    def file(self) -> str | None:
        """The dataset's file, for messages about lines of it."""
        return None if self._task.dataset is None else self._task.dataset.path

    def remembering(self, ids: RepeatedIds) -> Callable[[object, int], None]:
        """Return what remembers an id and its line as they go out: in a batch 2 and "2" are one."""
        if self._batch is None:
            return ids.add
        return lambda name, line: ids.add(custom_id(name), line)

    def close(self) -> None:
        """End the child processes of an isolating policy; it can be used again."""
        self._media.close()

    def render(self, row: Sample | RowError) -> Rendered:
        """Render one row; its errors are returned, not raised."""
        return self.finish(self.prepare(row))

    def prepare(self, row: Sample | RowError) -> Prepared:
        """Return the records of a row with its media read and changed, still without base64 and JSON."""
        if isinstance(row, RowError):
            return _new(Prepared, (row, (), row))
        try:
            if row.messages is not None and self._task.assembly is None:  # a template has its own messages
                row = row._replace(messages=tuple(self._media.received(row.messages, change=self._changes)))
            messages = self._task.plain_messages(row) if self._sends else None
            if messages is None:
                return _new(Prepared, (row, [self._record(row, made) for made in self._assembled(row)], None))
            wire = self._wire(row, messages)
            record = {"id": row.id, "messages": wire} if self._as_list else self._request(row, wire)
        except MMPromptError as error:
            return _new(Prepared, (row, (), at(error, row)))
        return _new(Prepared, (row, (record,), None))

    def finish(self, prepared: Prepared) -> Rendered:
        """Return the lines of a row that was prepared."""
        row, records, error = prepared
        if error is not None:
            return _new(Rendered, (row, None, error, ()))
        answer = self._answer
        chunks: list[bytes] = []
        found: list[str] = []
        try:
            for record in records:
                if self._batch is not None and (dropped := record.pop("dropped_examples", 0)):
                    found.append(f"no room for {dropped} of the in-context examples")
                if answer in row.columns:  # type: ignore[union-attr]  # what has records is a sample
                    record["answer"] = row.columns[answer]  # type: ignore[union-attr,index]  # and no column is None
                chunks += record_chunks(record, newline=True)
        except MMPromptError as fault:
            return _new(Rendered, (row, None, at(fault, row), ()))  # type: ignore[arg-type]  # likewise
        if len(chunks) == len(records):  # no media
            return _new(Rendered, (row, chunks, None, found))
        for part in itertools.chain(*map(media_of, records)):
            # what came inside a chat has no name
            found += [f"{part.origin or part.modality}: {finding}" for finding in part.findings]
        return _new(Rendered, (row, chunks, None, found))

    def _assembled(self, row: Sample) -> list[Assembled]:
        return self._task.assembled(row, max_images=self._max_images)

    def _record(self, sample: Sample, made: Assembled) -> dict[str, Any]:
        """Return the record of one prompt; what was dropped from it is told."""
        record: dict[str, Any]
        if self._batch is not None:
            record = self._request(sample, self._wire(sample, self._task.messages_of(made)), made.turn)
        else:
            record = {"id": sample.id} if made.turn is None else {"id": sample.id, "turn": made.turn}
            self._put(sample, made, record)
        if made.dropped:
            record["dropped_examples"] = made.dropped
        return record

    def _request(self, sample: Sample, wire: Any, turn: int | None = None) -> dict[str, Any]:
        """Return the record of messages that were written."""
        if self._batch is not None:
            return batch_line(sample.id, turn, {**self._batch, "messages": wire})
        return {"id": sample.id, **keyed(wire)}

    def _messages(self, sample: Sample, made: Assembled, record: dict[str, Any]) -> None:
        messages = self._task.messages_of(made)
        if type(messages) is dict:
            record.update(labelled({str(label): self._wire(sample, m) for label, m in messages.items()}))
        else:
            record.update(keyed(self._wire(sample, messages)))

    def _wire(self, sample: Sample, messages: list[Message]) -> Any:
        try:
            return self._write(messages if self._sends else self._media.in_place(messages))
        except UnreadError as unread:
            raise unread.error.located(**self._task.place_of(sample, unread.source)) from None
        except (MediaError, TargetError) as error:
            raise error.located(**self._place_of(sample, messages, error)) from None

    def _place_of(self, sample: Sample, messages: list[Message], error: MMPromptError) -> dict[str, Any]:
        """Return where the medium stands that an error is about; empty where it is about no single one."""
        message, number = error.where.message, error.where.part
        if message is None or number is None:
            return {}
        part = messages[message - 1].parts[number - 1]
        return self._task.place_of(sample, part.source) if isinstance(part, MediaRef) else {}

    def _prompt(self, _sample: Sample, made: Assembled, record: dict[str, Any]) -> None:
        record["prompt"] = plain_prompt(made.prompt, self._reader)

    def _string(self, sample: Sample, made: Assembled, record: dict[str, Any]) -> None:
        string = self._task.string_of(made)
        media: Any
        if isinstance(string, Mapping):
            record["string"] = {str(label): str(s) for label, s in string.items()}
            media = {str(label): beside for label, s in string.items() if (beside := self._beside(sample, s))}
        else:
            record["string"] = str(string)
            media = self._beside(sample, string)
        if media:
            record["media"] = media

    def _beside(self, sample: Sample, string: object) -> Any:
        """Return the content parts of the media beside a string, None where it has none."""
        media = getattr(string, "media", ())
        return content_of(self._wire(sample, [Message("user", media)])) if media else None


def _batch_body(task: Task, target: str) -> dict[str, Any]:
    """Return what the body of each batch line holds beside the messages, or refuse what a server could not take."""
    if limits(target).wire != "openai":
        raise TargetError(f"batch lines are OpenAI's, and {target} has another form", "use --target openai or vllm")
    if not task.config.model_name:
        raise TaskError("a batch line needs the name of a model", "give model: {model: NAME} in a task file")
    if task.mode == "ppl":
        raise TaskError("a batch asks for replies, and this task compares labels", "use --emit messages")
    generation = dict(task.config.generation)
    length = None if task.assembly is None else task.assembly.arguments.get("max_out_len")
    if isinstance(length, int) and "max_completion_tokens" not in generation:
        generation.setdefault("max_tokens", length)
    return {**generation, "model": task.config.model_name}


def render(
    renderer: Renderer,
    rows: Iterable[Sample | RowError],
    writer: ChunkWriter,
    *,
    limit: int | None = None,
    strict: bool = False,
    workers: int = 1,
    on_error: Callable[[MMPromptError], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    on_row: Callable[[], object] | None = None,
) -> RenderReport:
    """Render ``rows`` to ``writer``, in order, and return what was done.

    ``limit`` bounds the rows read. A row's error goes to ``on_error`` and the row is left out; with ``strict`` the
    first one is raised. What was accepted but is worth a report (a picture that is not of the declared type) goes to
    ``on_note``. The output is the same for any number of ``workers``.

    Raises:
        MMPromptError: under ``strict``, the first error; a dataset that cannot be read.
        OSError: the output cannot be written.
    """
    from mmprompt.datasets.repeated_ids import RepeatedIds  # noqa: PLC0415  # only where rows are rendered

    _warm_heap()
    done = failed = 0
    with RepeatedIds() as ids, _prepared(renderer, itertools.islice(rows, limit), workers) as prepared:
        write, add = writer.write, renderer.remembering(ids)
        for row, chunks, error, findings in map(renderer.finish, prepared):
            if on_row is not None:
                on_row()
            if chunks is not None:
                done += 1
                write(chunks)
                add(row.id, row.line or row.row)  # type: ignore[union-attr]  # what has chunks is a sample
                if findings and on_note is not None:
                    _tell(row, findings, on_note)  # type: ignore[arg-type]  # likewise
                continue
            failed += 1
            if not isinstance(row, RowError):
                add(row.id, row.line or row.row)
            if strict and error is not None:
                writer.flush()
                raise error
            if on_error is not None and error is not None:
                on_error(error)
        writer.flush()
        return RenderReport(done, failed, _repeats(ids, renderer.file, on_error))


def _prepared(
    renderer: Renderer, rows: Iterator[Sample | RowError], workers: int
) -> AbstractContextManager[Iterator[Prepared]]:
    """Prepare rows, in order; threads end with the block."""
    if workers == 1:
        return nullcontext(map(renderer.prepare, rows))
    return closing(ahead(renderer.prepare, rows, workers, bytes_of, weight_of))


def _repeats(ids: RepeatedIds, file: str | None, on_error: Callable[[MMPromptError], None] | None) -> int:
    """Report the ids that came again, and return how many."""
    repeated = 0
    for line, first in ids.repeats():
        repeated += 1
        if on_error is not None:
            again = RowError(f"the id of line {first} again", "give each row an id of its own")
            on_error(again.located(file=file, line=line, column="id"))
    return repeated


def _tell(sample: Sample, findings: Iterable[str], on_note: Callable[[str], None]) -> None:
    where = Where(sample.file, sample.line, sample=sample.label)
    for finding in findings:
        on_note(f"{where}: {finding}")


_warmed: list[bool] = []


def _warm_heap() -> None:
    """Free one large block once, so that glibc keeps freed megabytes instead of asking the kernel for each row's.

    A threshold set in the environment (``MALLOC_TRIM_THRESHOLD_``) stays: glibc moves none of its own then.
    """
    if not _warmed:
        _warmed.append(True)
        block = bytes(30 << 20)
        del block
