"""What people see of a row: its segments, its prompts, its requests with the origin of each text, and its media."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mmprompt.datasets.choices import choices_in
from mmprompt.datasets.openai_chat import own_settings
from mmprompt.datasets.sample import Row, Sample
from mmprompt.errors import MMPromptError, TargetError
from mmprompt.errors.findings import Finding
from mmprompt.icl.assembly import Assembled
from mmprompt.media.policy import MediaPolicy
from mmprompt.messages import MODALITIES, MediaPart
from mmprompt.render.answers import RowAnswers
from mmprompt.render.builder import FAULTS, FailedRow, PreparedRow, RequestBuilder
from mmprompt.render.media import sent_media
from mmprompt.render.settings import request_settings
from mmprompt.render.wire_request import WireRequest
from mmprompt.targets.limits import limits
from mmprompt.targets.part_writer import Payload
from mmprompt.targets.wire_json import keyed
from mmprompt.tasks.media import task_changes
from mmprompt.tasks.prompt_items import plain_prompt
from mmprompt.tasks.task import Task
from mmprompt.viewer.journal_task import is_held
from mmprompt.viewer.medium import Medium, Seconds, medium_of
from mmprompt.viewer.provenance import Provenance, Span, sample_view
from mmprompt.viewer.short_json import pretty_json, short_value
from mmprompt.viewer.unsent_requests import unsent_requests

TARGETS = ("vllm", "openai", "anthropic", "gemini", "hf")
"""The targets whose requests a page shows."""


class PartView(NamedTuple):
    """A content part: the spans of a text, or a medium."""

    spans: tuple[Span, ...] = ()
    medium: int | None = None


class MessageView(NamedTuple):
    """A message. ``beside`` holds its keys beside role and content, such as ``tool_calls``."""

    role: str
    parts: tuple[PartView, ...]
    beside: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The texts of the message, as they are sent."""
        return "".join([span.text for part in self.parts for span in part.spans])


class RequestView(NamedTuple):
    """A request: its messages, its turn or label, and how many examples had no room."""

    messages: tuple[MessageView, ...]
    turn: int | None
    label: object
    dropped: int


class RowView(NamedTuple):
    """A row as it is shown. ``media`` are numbered through all requests; ``parts`` hold their bytes.

    ``error`` is why it cannot be sent; its requests then show its messages as far as
    they can be made. ``sample`` is None where it cannot be read.
    """

    row: Row
    sample: Sample | None
    requests: tuple[RequestView, ...] = ()
    media: tuple[Medium, ...] = ()
    parts: tuple[MediaPart | None, ...] = ()
    error: MMPromptError | None = None


class RowViews:
    """Makes the views of a task's rows. Close it to end its decoding processes.

    The messages are those of ``target`` if it takes OpenAI's form, else those for ``vllm``. With ``fit`` media are
    changed as little as each target needs; else as the task says.

    Raises:
        TargetError: the target is unknown.
        PolicyError: a root is not a folder.
    """

    def __init__(
        self,
        task: Task,
        target: str = "vllm",
        policy: MediaPolicy | None = None,
        targets: Sequence[str] = TARGETS,
        *,
        fit: bool = False,
    ) -> None:
        self.task = task
        shown = target if limits(target).wire == "openai" else "vllm"
        self.target = shown
        names = dict.fromkeys((shown, target, *targets))
        # each request is looked into, so none is made as one text
        changes = task_changes(task, fit=True) if fit else None
        self.builders = {
            name: RequestBuilder(task, name, policy=policy, changes=changes, formed=False) for name in names
        }
        self._settings = {name: request_settings(task, name) for name in names}
        self._provenance = Provenance(task)
        self._answers = RowAnswers(task)

    @property
    def policy(self) -> MediaPolicy:
        """The policy of the media."""
        return self.builders[self.target].media.reader.policy

    def close(self) -> None:
        """End the decoding processes."""
        for builder in self.builders.values():
            builder.close()

    def view(self, row: Row, seconds: Seconds | None = None) -> RowView:
        """Return the view of a row."""
        if is_held(self.task):
            return RowView(row, row if isinstance(row, Sample) else None)
        prepared = self.builders[self.target].prepare(row)
        error = None
        if isinstance(prepared, FailedRow):
            error = prepared.error
            if not isinstance(row, Sample):
                return RowView(row, None, error=error)
            prepared = PreparedRow(row, unsent_requests(self.builders[self.target], row))
        sample = prepared.row if isinstance(prepared.row, Sample) else None
        spans = iter(self._spans(prepared))
        media: list[Medium] = []
        parts: list[MediaPart | None] = []
        requests = tuple([_request(wire, spans, media, parts, seconds) for wire in prepared.requests])
        return RowView(row, sample, requests, tuple(media), tuple(parts), error)

    def _spans(self, prepared: PreparedRow) -> list[list[Span]]:
        """Return the spans of all texts of the requests of a row; those of unknown origin are whole and computed."""
        texts = [text for wire in prepared.requests for text in _texts(wire.wire)]
        found = None
        if texts and isinstance(prepared.row, Sample):
            found = self._provenance.texts(prepared.row, self._assembled(prepared.row))
        if found is None or ["".join([span.text for span in spans]) for spans in found] != texts:
            return [[Span("computed", text)] for text in texts]
        return found

    def _assembled(self, sample: Sample) -> list[Assembled]:
        return [] if self.task.assembly is None else self.builders[self.target].assembled(sample)

    def data(self, view: RowView) -> dict[str, Any]:
        """Return all that a page shows of a row."""
        sample = view.sample
        if sample is None:
            return {"error": None if view.error is None else Finding.of(view.error)._asdict()}
        return {
            "error": None if view.error is None else Finding.of(view.error, sample.row, sample.id)._asdict(),
            "columns": {str(name): _plain(value) for name, value in sample.columns.items()},
            "segments": list(self._segments(sample)),
            "requests": [_request_data(request) for request in view.requests],
            "media": [medium.data for medium in view.media],
            "prompts": [] if view.error or is_held(self.task) else self._prompts(sample),
            "bodies": {} if is_held(self.task) else {name: self._bodies(name, sample) for name in self.builders},
            "answers": [_plain(self._answers.value(sample, request.turn)) for request in view.requests],
            "choices": list(choices_in(sample.columns).texts),
        }

    def _segments(self, sample: Sample) -> Iterator[dict[str, Any]]:
        view = sample_view(sample, self.task)
        for column in sample.columns:
            try:
                segments = view.segments(column) or ()
            except MMPromptError:
                continue  # the error of the row says it
            for segment in segments:
                value = _plain(segment.value)
                yield {"column": column, "modality": segment.modality, "value": value, "offset": segment.start}

    def _prompts(self, sample: Sample) -> list[str]:
        reader = self.builders[self.target].media.reader
        try:
            made = self.task.assembled(sample)
            return [pretty_json({"prompt": plain_prompt(one.prompt, reader)}) for one in made]
        except FAULTS as error:
            return [str(error)]

    def _bodies(self, target: str, sample: Sample) -> list[dict[str, str]]:
        """Return the JSON of the requests for a target, or why it gets none."""
        prepared = self.builders[target].prepare(sample)
        if isinstance(prepared, FailedRow):
            return [{"error": str(prepared.error)}]
        own = None if sample.messages is None else own_settings(sample)
        found = []
        for wire in prepared.requests:
            try:
                body = self._settings[target].body(wire.wire, wire.turn, own=own)
            except MMPromptError:  # it needs what the caller gives, such as max_tokens
                body = keyed(wire.wire)
            try:
                found.append({"json": pretty_json(body)})
            except TargetError as error:
                found.append({"error": str(error)})
        return found


def request_view(
    wire: Sequence[Mapping[str, Any]], turn: int | None, label: object
) -> tuple[RequestView, list[Medium], list[MediaPart | None]]:
    """Return the view of messages in OpenAI's form, with its media; the texts are computed."""
    media: list[Medium] = []
    parts: list[MediaPart | None] = []
    spans = iter([[Span("computed", text)] for text in _texts(wire)])
    return _request(WireRequest(wire, turn, label), spans, media, parts, None), media, parts


def _request(
    wire: WireRequest,
    spans: Iterator[list[Span]],
    media: list[Medium],
    parts: list[MediaPart | None],
    seconds: Seconds | None,
) -> RequestView:
    messages = []
    for message in wire.wire:
        shown = []
        for part in _content(message):
            if _is_text(part):
                shown.append(PartView(tuple(next(spans))))
                continue
            for found in _media(part, seconds):
                shown.append(PartView(medium=len(media)))
                media.append(found[0])
                parts.append(found[1])
        beside = {key: short_value(value) for key, value in message.items() if key not in ("role", "content")}
        messages.append(MessageView(message["role"], tuple(shown), beside))
    return RequestView(tuple(messages), wire.turn, wire.label, wire.dropped)


def _content(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content or []


def _is_text(part: Mapping[str, Any]) -> bool:
    return part.get("type") == "text"


def _texts(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for message in messages:
        yield from [part["text"] for part in _content(message) if _is_text(part)]


def _media(part: Any, seconds: Seconds | None) -> list[tuple[Medium, MediaPart | None]]:
    """Return the media of a content part: read ones, and those that go by their name."""
    if isinstance(part, Payload):
        return [(medium_of(part.part, seconds), part.part)]
    held = [found for value in part.values() for found in _media(value, seconds)] if isinstance(part, dict) else []
    if held or not isinstance(part, dict) or "type" not in part:
        return held
    named = [(Medium(sent.modality, "", "", url=sent.origin), None) for sent in sent_media(part)]
    modality = next((m for m in MODALITIES if m in str(part["type"])), "image")
    return [*named] or [(Medium(modality, "", str(part.get("name", ""))), None)]


def _request_data(request: RequestView) -> dict[str, Any]:
    messages = [
        {
            "role": message.role,
            "parts": [
                {"spans": [span if span.columns else span[:2] for span in part.spans]}
                if part.medium is None
                else {"medium": part.medium}
                for part in message.parts
            ],
            "beside": message.beside,
        }
        for message in request.messages
    ]
    label = None if request.label is None else str(request.label)
    return {"messages": messages, "turn": request.turn, "label": label, "dropped": request.dropped}


def _plain(value: object) -> Any:
    """Return a value of a row as JSON has it: objects by their type, texts of media in short."""
    if isinstance(value, (bytes, bytearray)):
        return f"<{len(value):,} bytes>"
    if isinstance(value, (str, int, float, type(None))):
        return short_value(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else f"<{type(value).__name__}>"
