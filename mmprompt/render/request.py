"""``Request``, and the stream of them behind ``Task.requests``: every row of a task, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any

from mmprompt.datasets.choices import choices_in
from mmprompt.datasets.openai_chat import own_settings
from mmprompt.datasets.sample import Sample
from mmprompt.errors import MMPromptError, TargetError, TaskError, Where, nearest, shown
from mmprompt.errors.findings import Note
from mmprompt.media.changes import Changes
from mmprompt.media.policy import MediaPolicy
from mmprompt.render.answers import RowAnswers
from mmprompt.render.builder import FailedRow, PreparedRow, RequestBuilder, prepared_rows
from mmprompt.render.media import SentMedium, count_media, media_of, no_room, notes_of, part_bytes, sent_media
from mmprompt.render.settings import RequestSettings, request_settings
from mmprompt.render.wire_request import WireRequest
from mmprompt.targets.json_values import JSONValue
from mmprompt.targets.part_writer import Wire
from mmprompt.targets.wire_json import EncodedJSON, decoded, json_digest, keyed, record_chunks, with_text
from mmprompt.tasks.config import CHANGE_KEYS
from mmprompt.tasks.media import task_changes
from mmprompt.tasks.task import Task

_SDK_KEYS = frozenset(
    (
        "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "metadata", "n",
        "parallel_tool_calls", "presence_penalty", "reasoning_effort", "response_format", "seed", "service_tier",
        "stop", "stop_sequences", "stream", "stream_options", "temperature", "thinking", "tool_choice", "tools",
        "top_k", "top_logprobs", "top_p", "user", "verbosity",
    )
)  # fmt: skip
"""Settings that OpenAI's or Anthropic's SDK takes as arguments of ``create``. All others go as its ``extra_body``."""

_OPENAI_LACKS = frozenset(("top_k", "stop_sequences", "thinking"))
_SHOWN = 60


class Request(Mapping[str, Any]):
    """One request, of a row or of one of its turns or labels. Immutable and picklable.

    It is a mapping of the arguments of OpenAI's and Anthropic's SDKs, the model left out:
    ``client.chat.completions.create(model=NAME, **request)``. ``body()`` is the same request as bytes of JSON.
    Anthropic requires ``max_tokens``: give it to the SDK yourself if the task has no ``max_out_len``.
    The settings of a line of OpenAI's Batch API stand in place of the task's where the wire form is OpenAI's.
    """

    __slots__ = ("_answers", "_choices", "_columns", "_id", "_line", "_own", "_settings", "_wire")

    def __init__(
        self,
        row: Sample,
        wire: WireRequest,
        settings: RequestSettings,
        answers: tuple[object, ...],
    ) -> None:
        self._id = row.id
        self._line = (row.file, row.line)
        self._wire = wire
        self._settings = settings
        self._answers = answers
        self._columns: Mapping[str, object] | None = row.columns  # until somebody asks for the choices
        self._choices: tuple[str, ...] = ()
        self._own = None if row.messages is None else own_settings(row)

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        """Return whether ``other`` is this very request; to compare content, compare ``body()``."""
        return self is other

    def __getitem__(self, key: str) -> Any:
        """Return an argument of the SDK, such as ``messages``, ``system`` or ``max_tokens``."""
        wire = self.unencoded
        return with_text(wire[key]) if key in wire else self._arguments()[key]

    def __iter__(self) -> Iterator[str]:
        yield from self.unencoded
        yield from self._arguments()

    def __len__(self) -> int:
        return len(self.unencoded) + len(self._arguments())

    def __repr__(self) -> str:
        media = media_of(self._wire.wire)
        beside = [f" {n} {v!r}"[:_SHOWN] for n, v in (("turn", self.turn), ("label", self.label)) if v is not None]
        name = f"{str(self.id)[:_SHOWN]!r}{''.join(beside)} for {self._settings.target}"
        count = count_media(decoded(self._wire.wire))
        return f"<Request {name}: {count} media, {sum(map(part_bytes, media)):,} bytes>"

    def _repr_html_(self) -> str:
        """Return the request for a notebook."""
        from mmprompt.viewer.notebook import request_html  # noqa: PLC0415  # an import against the order

        return request_html(self)

    @property
    def id(self) -> object:
        """The row's id, with its type."""
        return self._id

    @property
    def answers(self) -> tuple[object, ...]:
        """The right answers as the row has them; of a dialogue those of this turn. Empty if the row has none."""
        return self._answers

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts of a multiple-choice row."""
        columns = self._columns
        if columns is not None:
            self._choices, self._columns = choices_in(columns).texts, None
        return self._choices

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        """Return the slots, without the columns of the row."""
        found = self.choices
        return None, {**{name: getattr(self, name) for name in self.__slots__}, "_choices": found, "_columns": None}

    @property
    def turn(self) -> int | None:
        """The 0-based turn of a dialogue; None for other tasks."""
        return self._wire.turn

    @property
    def label(self) -> object:
        """The label of a PPL task; None for other tasks."""
        return self._wire.label

    @property
    def where(self) -> Where:
        """The file, line and id of the row, for messages about it."""
        return Where(*self._line, sample=str(self.id))

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was accepted but is odd, and what was dropped: in-context examples, settings of a Batch line."""
        dropped = [no_room(self.dropped)] if self.dropped else []
        settings, own = self._settings, self._own
        if own and settings.wire != "openai":
            dropped.append(Note("MM614", f"{settings.target} does not get the Batch line's own {', '.join(own)}"))
        media = media_of(self._wire.wire)
        return (*dropped, *notes_of(media))

    @property
    def dropped(self) -> int:
        """How many in-context examples were left out because the prompt was too long."""
        return self._wire.dropped

    @property
    def unencoded(self) -> Wire:
        """The wire form with each medium as a ``Payload``, its bytes, for those who put the base64 elsewhere."""
        return keyed(decoded(self._wire.wire))

    @property
    def messages(self) -> list[dict[str, Any]] | None:
        """The messages as plain data in the target's wire form; None for Gemini, which has ``contents``."""
        return self.get("messages")

    @property
    def generation(self) -> dict[str, Any]:
        """The generation settings that the task gives this request, by OpenAI's names for the target ``hf``."""
        return self._settings.keys_of(self.turn, self._own)

    @property
    def system(self) -> Any:
        """The system prompt where the wire form has it apart (Anthropic), else None."""
        return self.get("system")

    @property
    def contents(self) -> list[dict[str, Any]] | None:
        """The contents of a request to Gemini, else None."""
        return self.get("contents")

    @property
    def media(self) -> tuple[SentMedium, ...]:
        """The media that are sent, in their order; hashed when they are asked for."""
        return tuple(sent_media(decoded(self._wire.wire)))

    def body(self, model: str | None = None, options: Mapping[str, JSONValue] | None = None) -> bytes:
        """Return the JSON body of the request.

        ``requests.post(url, data=request.body(), headers={"Content-Type": "application/json"})`` sends it.

        It holds the messages, the task's generation settings, ``max_out_len`` as the wire's ``max_tokens``, stop
        strings, and ``model``: the one given, else that of a Batch line, else the task's, else none. ``options`` are
        settings in OpenAI's wire form that stand in place of the request's own: ``{"temperature": 0}``.

        Raises:
            TargetError: the target ``hf`` has no server, or there are ``options`` for another wire form.
            TaskError: Anthropic requires ``max_tokens``, and the task has no ``max_out_len``.
        """
        return b"".join(self.body_chunks(model, options))

    def body_chunks(self, model: str | None = None, options: Mapping[str, JSONValue] | None = None) -> list[bytes]:
        """Return ``body`` in pieces, which need not be joined to be sent."""
        if options and self._settings.wire != "openai":
            raise TargetError(f"{self._settings.target} takes no options", "set them in the task file")
        wire = self._wire.wire
        if type(wire) is EncodedJSON and self._own is None and "messages" not in (options or {}):
            return wire.chunks(self._settings.head(self._wire.turn, model, options), b"}")
        own = {**(self._own or {}), **options} if options else self._own
        return record_chunks(self._settings.body(wire, self._wire.turn, model, own))

    def digest(self, model: str | None = None) -> str:
        """Return a SHA-256 by which equal requests are found, such as the ``request`` of a line in a journal.

        It is over the JSON of ``body(model)`` with a gap for each medium, and then over the bytes of the media, before
        base64: it is not the hash of ``body()``. For the target ``hf`` it is over the messages alone.
        """
        if self._settings.wire == "hf":
            return json_digest(self.unencoded)
        wire = self._wire.wire
        if type(wire) is EncodedJSON and self._own is None:
            return wire.digest(self._settings.head(self._wire.turn, model), b"}")
        return json_digest(self._settings.body(wire, self._wire.turn, model, self._own))

    def _arguments(self) -> dict[str, Any]:
        """Return the settings as arguments of the SDK; those it does not know as ``extra_body``."""
        settings = self._settings
        if settings.wire not in ("openai", "anthropic", "gemini"):
            return {}
        keys = settings.keys_of(self.turn, self._own)
        if settings.wire == "gemini":
            return keys
        keys.pop("model", None)  # the caller names it
        known = _SDK_KEYS - _OPENAI_LACKS if settings.wire == "openai" else _SDK_KEYS
        extra = {key: value for key, value in keys.items() if key not in known}
        own = {key: value for key, value in keys.items() if key in known}
        return {**own, "extra_body": extra} if extra else own


def task_requests(
    task: Task,
    target: str = "vllm",
    *,
    media: str | None = None,
    policy: MediaPolicy | None = None,
    changes: Mapping[str, object] | Changes | None = None,
    workers: int = 1,
    on_error: Callable[[MMPromptError], None] | None = None,
) -> Iterator[Request]:
    """Yield the requests of a task; see ``Task.requests``."""
    require_numbers(workers)
    asked = None if changes is None else asked_changes(task, changes)
    builder = RequestBuilder(task, target, media=media, policy=policy, changes=asked)
    return _stream(builder, workers, on_error)


def require_numbers(workers: int, limit: int | None = None) -> None:
    """Refuse fewer threads than 1, fewer rows than 0, and other values than whole numbers."""
    if type(workers) is not int or workers < 1:
        raise TaskError(f"workers is {shown(workers)}", "give a whole number from 1")
    if limit is not None and (type(limit) is not int or limit < 0):
        raise TaskError(f"limit is {shown(limit)}", "give a whole number from 0, or None for all rows")


def asked_changes(task: Task, changes: Mapping[str, object] | Changes) -> Changes:
    """Return the task's changes, replaced by ``changes`` where both name one, as in the ``media`` section."""
    if isinstance(changes, Changes):
        return changes
    for key in changes:
        if key not in CHANGE_KEYS:
            raise TaskError(f"unknown change {shown(key)}", nearest(key, CHANGE_KEYS))
    return task_changes(task, **{CHANGE_KEYS[key]: value for key, value in changes.items()})


def _stream(
    builder: RequestBuilder, workers: int, on_error: Callable[[MMPromptError], None] | None
) -> Iterator[Request]:
    maker = RequestMaker(builder)
    rows = builder.task.samples()
    with closing(builder), prepared_rows(builder, builder.prepare, rows, workers) as prepared:
        for made in prepared:
            if not isinstance(made, FailedRow):
                yield from maker.of(made)
            elif on_error is None:
                raise made.error
            else:
                on_error(made.error)


class RequestMaker:
    """Makes ``Request`` objects of what a builder has prepared."""

    def __init__(self, builder: RequestBuilder) -> None:
        self._answers = RowAnswers(builder.task)
        self._settings = request_settings(builder.task, builder.target)

    def of(self, prepared: PreparedRow) -> list[Request]:
        """Return the requests of a row."""
        row, wires = prepared
        return [Request(row, wire, self._settings, self._answers.of(row, wire.turn)) for wire in wires]
