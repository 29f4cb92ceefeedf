"""The requests of one row: its messages assembled, their media read and changed, and written for a target.

This is the one place where requests are made. Lines, Python's ``Task.requests``, the plugins and the test helpers
take what it gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Union

from mmprompt.datasets.sample import Row, Sample
from mmprompt.errors import MediaError, MMPromptError
from mmprompt.media.request_reader import Files, RequestReader
from mmprompt.media.urls import is_plain_url
from mmprompt.messages import MediaPart, MediaRef, Message, TextPart
from mmprompt.render.forms import Forms
from mmprompt.render.media import media_of, part_bytes, sample_bytes
from mmprompt.render.parallel import ordered_map
from mmprompt.render.wire_request import LinesTogether, RowLines, WireRequest
from mmprompt.targets.limits import limits
from mmprompt.targets.part_writer import PartWriter
from mmprompt.targets.wire_json import Payload, writer_for
from mmprompt.tasks.forms import ROW_FAULTS
from mmprompt.tasks.media import TaskMedia, in_own_folder
from mmprompt.tasks.task import Task

if TYPE_CHECKING:
    from mmprompt.icl.assembly import Assembled
    from mmprompt.media.cache.cache import MediaCache
    from mmprompt.media.changes import Changes
    from mmprompt.media.policy import MediaPolicy

_Prepared = TypeVar("_Prepared")
_new = tuple.__new__  # half the time of the class, and this runs for every row


_AHEAD = 32
"""The most rows that are taken before the first is prepared."""


def _is_plain(row: Row) -> bool:
    """Return whether a row has neither messages nor a folder of its own."""
    return type(row) is Sample and row[6] is None and row[9] is None


class PreparedRow(NamedTuple):
    """A row and its requests; their media are read, not yet encoded."""

    row: Sample
    requests: Sequence[WireRequest]


class FailedRow(NamedTuple):
    """A row that gives no request, and why. ``row`` is the error itself where the dataset could not read the row."""

    row: Row
    error: MMPromptError


RowRequests = Union[PreparedRow, FailedRow]


FAULTS = ROW_FAULTS
"""What costs one row and not the run: an error of ours, or media that take more memory than there is."""


def failed(row: Sample, error: MMPromptError | MemoryError) -> FailedRow:
    """Return a row as failed, with the place of its error."""
    if isinstance(error, MemoryError):
        error = MediaError(
            "the row needs more memory than there is", "make its media smaller, or lower max_bytes", code="MM902"
        )
    return FailedRow(row, row.located(error))


class RequestBuilder:
    """Builds the requests of a task for one target. It is made once for a run and may be shared between threads.

    Args:
        task: the task, or a dataset's default one.
        target: ``"vllm"``, ``"openai"``, ``"anthropic"``, ``"gemini"``, ``"hf"`` or a user's own.
        media: ``"inline"``, ``"file"``, ``"url"`` or ``"keep"``; by default the task's own mode, else ``"inline"``.
        policy: what may be read; by default paths under the dataset's folder.
        changes: the changes of media; by default those of the task.
        cache: keeps changed media; by default 64 MiB in memory.
        formed: make requests by the forms of rows; they are the same without, and take more time.
        bounded: drop in-context examples until the images of a prompt are as many as the target takes.

    Raises:
        TargetError: the target is unknown.
        TaskError: a change is asked for, but the media go by name.
        PolicyError: a root is not a folder.
    """

    def __init__(
        self,
        task: Task,
        target: str = "vllm",
        *,
        media: str | None = None,
        policy: MediaPolicy | None = None,
        changes: Changes | None = None,
        cache: MediaCache | None = None,
        bounded: bool = True,
        formed: bool = True,
    ) -> None:
        self.task = task
        self.target = target
        self._templated = task.assembly is not None
        self.media = TaskMedia(task, target, mode=media, policy=policy, changes=changes, cache=cache)
        self.writer = writer_for(target, Payload, self.media.reading)
        bounds = self.media.reader.policy
        # so few media need no counting: each is within max_bytes, and nothing makes them larger
        few = min(2, bounds.max_request_bytes // bounds.max_bytes, bounds.max_request_media)
        self.few = 0 if self.media.decodes else few
        self._before: Files = {}  # of the request before: rows share the pictures of their examples
        images = limits(target).modalities.get("image")
        known = () if self.media.reader.policy.fetch else limits(target).schemes
        self.sent_schemes = tuple([scheme for scheme in ("https", "http") if scheme in known])
        self.url_heads = frozenset([f"{scheme}://"[:5] for scheme in self.sent_schemes])
        self.takes_addresses = not self.media.reader.policy.fetch and bool(self.sent_schemes)
        self.forms = Forms(self, usable=formed)
        self._max_images = images.max_count if images is not None and bounded else None

    def scheme_sent(self, source: str) -> str:
        """Return how a plain address begins that is sent as it is; empty for another source."""
        return source[:5] if source[:5] in self.url_heads and is_plain_url(source) else ""

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_before": {}}

    def close(self) -> None:
        """End the decoding processes; the builder can be used again."""
        self.media.close()
        self._before = {}

    def prepare(self, row: Row, replies: Sequence[str] = ()) -> PreparedRow | FailedRow:
        """Return the requests of a row. Errors are returned with their place, not raised.

        With ``replies``, the model's words in the first turns of a dialogue, the request is that of the turn after
        them; there is none after the last.
        """
        if not isinstance(row, Sample):
            return FailedRow(row, row)
        walked = replies or row[6] is not None or row[9] is not None  # no plain row
        made = None if walked else self.forms.requests(row)
        return self._walked(row, replies) if made is None else _new(PreparedRow, (row, made))

    def _walked(self, row: Sample, replies: Sequence[str] = ()) -> PreparedRow | FailedRow:
        try:
            sample = row if row.messages is None else self.received(row)
            return _new(PreparedRow, (sample, list(self._requests(sample, self.wire, replies))))
        except FAULTS as error:
            return failed(row, error)

    def _formed(self, row: Sample, made: RowLines | list[WireRequest] | None) -> RowRequests | RowLines:
        """Return a row with what its form gives, or walked if that is None."""
        if made is None:
            return self._walked(row)
        return _new(PreparedRow, (row, made)) if isinstance(made, list) else made

    def prepare_line(self, row: Row) -> RowRequests | RowLines:
        """Return the line of a row, as ``--emit messages`` writes it, if its form gives it; else as ``prepare``."""
        return self._formed(row, self.forms.line(row)) if _is_plain(row) else self.prepare(row)  # type: ignore[arg-type]  # a Sample

    def prepare_lines(self, rows: Iterator[Row]) -> Iterator[RowRequests | RowLines | LinesTogether]:
        """Yield ``prepare_line`` of each row, or the lines of several rows together.

        Up to ``_AHEAD`` rows are taken before the first is prepared.

        An error of the dataset comes after the rows before it.
        """
        fault: Exception | None = None
        while fault is None:
            taken: list[Row] = []
            try:
                taken.extend(islice(rows, _AHEAD))
            except Exception as error:  # noqa: BLE001  # raised below
                fault = error
            if not taken and fault is None:
                return
            for is_plain, several in groupby(taken, _is_plain):
                if not is_plain:
                    yield from map(self.prepare, several)
                    continue
                samples: list[Any] = [*several]
                for made in self.forms.lines(samples):
                    yield made if type(made) is LinesTogether else self._formed(*made)
        raise fault

    def received(self, sample: Sample, *, change: bool = True) -> Sample:
        """Return a sample whose chat messages are checked and, with ``change``, changed; other samples stay."""
        if sample.messages is None or self._templated:  # a template has its own messages
            return sample
        messages = self.media.received(sample.messages, change=change)
        return sample if messages is sample.messages else sample._replace(messages=messages)

    def assembled(self, sample: Sample, replies: Sequence[str] = ()) -> list[Assembled]:
        """Return the prompts of a sample before the meta template, with as many examples as the target has room for."""
        return self.task.assembled(sample, max_images=self._max_images, replies=replies)

    def traced(self, sample: Sample, writer: PartWriter) -> Iterator[WireRequest]:
        """Yield the requests of a sample as ``writer`` writes and reads them, within no bounds on a request."""
        return self._requests(sample, lambda _, messages: writer.write(messages))

    def _requests(
        self, sample: Sample, write: Callable[[Sample, list[Message]], Any], replies: Sequence[str] = ()
    ) -> Iterator[WireRequest]:
        if not self._templated:
            yield _new(WireRequest, (write(sample, self.task.plain_messages(sample)), None, None, 0))
            return
        for made in self.assembled(sample, replies):
            messages = self.task.messages_of(made)
            if not isinstance(messages, dict):
                yield WireRequest(write(sample, messages), made.turn, None, made.dropped)
                continue
            for label, of_label in messages.items():
                yield WireRequest(write(sample, of_label), made.turn, label, made.dropped)

    def write(self, messages: Sequence[Message]) -> Any:
        """Return messages in the target's wire form, their media read and changed.

        Raises:
            MMPromptError: a medium cannot be read, or the target does not take it; with message and part.
        """
        if len(messages) == 1 and len(messages[0].parts) <= self.few:
            return self.writer.write(messages)
        media = [part for message in messages for part in message.parts if not isinstance(part, TextPart)]
        if len(media) <= self.few:
            return self.writer.write(messages)
        request = self.request_reader()
        for part in media:
            if isinstance(part, MediaPart):  # it came with its row
                request.part(part)
        written = self.writer.with_reader(request.read).write(messages)
        self.keep(request)
        return written

    def request_reader(self) -> RequestReader:
        """Return a reader for the media of one request, which does not read again what the request before had."""
        return RequestReader(self.media.reader.policy, self.media.read, self._before)

    def keep(self, request: RequestReader) -> None:
        """Keep the media of a request for the one after it."""
        self._before = request.files

    def wire(self, sample: Sample, messages: list[Message], *, in_place: bool = False) -> Any:
        """Return the messages of a sample as ``write`` does; errors name the column and the offset in it.

        With ``in_place`` each medium must stay one medium of its modality: a string has one placeholder for each.
        """
        placed = messages if sample.folder is None else in_own_folder(messages, sample)
        try:
            return self.write(self.media.in_place(placed) if in_place else placed)
        except MMPromptError as error:
            raise self._placed(sample, messages, error) from None

    def _placed(self, sample: Sample, messages: list[Message], error: MMPromptError) -> MMPromptError:
        """Return an error with the column and offset of the medium that it is about, if it is about a single one.

        What a decoder says of a file begins with its name.
        """
        where = error.where
        if where.message is None or where.part is None:
            return error
        part = messages[where.message - 1].parts[where.part - 1]
        if not isinstance(part, MediaRef):
            return error
        if error.code.startswith(("MM3", "MM4", "MM5")):
            from mmprompt.media.medium_names import naming_file  # noqa: PLC0415  # only for a fault

            error = naming_file(part, error)
        return error.located(**self.task.place_of(sample, part.source))


def prepared_rows(
    builder: RequestBuilder,
    prepare: Callable[[Row], _Prepared],
    rows: Iterator[Row],
    workers: int = 1,
    together: Callable[[Iterator[Row]], Iterator[_Prepared]] | None = None,
) -> AbstractContextManager[Iterator[_Prepared]]:
    """Return a context that gives what ``prepare`` makes of each row, in order.

    ``together`` takes the place of ``prepare`` where rows are prepared in the calling thread: it gets all of them.
    With ``workers`` above 1 that many threads prepare rows whose media are decoded, each with its own decoding process,
    or fetched. Rows whose media are only read gain nothing from threads, so they are prepared in the calling thread.
    """
    keep_heap()
    if workers == 1 or not (builder.media.decodes or builder.media.reader.policy.fetch):
        return nullcontext(map(prepare, rows) if together is None else together(rows))
    return closing(ordered_map(prepare, rows, workers, item_bytes=sample_bytes, result_bytes=_request_bytes))


def _request_bytes(prepared: object) -> int:
    """Return how many bytes of media the requests of a row hold."""
    if not isinstance(prepared, PreparedRow):
        return 0
    return sum([part_bytes(part) for request in prepared.requests for part in media_of(request.wire)])


_kept: list[bool] = []


def keep_heap() -> None:
    """Free one large block, once, so that glibc keeps freed megabytes instead of asking the kernel for each row's.

    A threshold set in the environment (``MALLOC_TRIM_THRESHOLD_``) stays.
    """
    if not _kept:
        _kept.append(True)
        block = bytes(30 << 20)
        del block
