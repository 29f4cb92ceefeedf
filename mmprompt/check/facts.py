"""What a row is for the rules: its texts and its question, and its facts for the rules on the whole dataset."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from mmprompt.check.answer_forms import choice_of
from mmprompt.check.kept import SampleFacts
from mmprompt.check.rule import CheckedMedium, CheckedRow, RowText
from mmprompt.datasets.choices import is_null
from mmprompt.datasets.media_columns import media_column, modality_of
from mmprompt.datasets.sample import ID_COLUMNS, Sample
from mmprompt.errors import TagError
from mmprompt.messages import MediaPart, Message, TextPart
from mmprompt.render.media import part_bytes
from mmprompt.segments import begins_tagged, scan
from mmprompt.tasks.task import Task
from mmprompt.templates.sample_view import CONTENT

_QUESTION = "question"
_UNSEEN = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff"))
"""Characters without width. A text of these alone asks nothing."""

_as_json = json.JSONEncoder(default=str).encode  # json.dumps makes an encoder for each value

_SHAPES = 1000
"""Shapes of rows whose JSON is remembered."""

_FRAME = 200
"""About how many bytes of JSON stand around the texts and media of a request."""


def texts_of(sample: Sample, task: Task) -> Iterator[RowText]:
    """Yield the texts of a row but its answer, its id and the names of its media."""
    for message in sample.messages or ():
        if message.role != "assistant":
            yield from [RowText(None, part.text) for part in message.parts if isinstance(part, TextPart)]
    for column, value in sample.columns.items():
        if column in sample.sent or column in ID_COLUMNS or column == task.output_column or _is_media(column, task):
            continue
        if isinstance(value, str):
            yield from _texts_in(column, value, tagged=is_tagged(column, value, sample, task))
        elif isinstance(value, (list, tuple)):
            yield from [RowText(column, element) for element in value if isinstance(element, str)]


def is_tagged(column: str, value: str, sample: Sample, task: Task) -> bool:
    """Return whether the tags of a column are read."""
    if not sample.scanned:
        return False
    named = task.config.tagged_columns
    if column == CONTENT or (named is not None and column in named):
        return True
    return named is None and task.assembly is not None and begins_tagged(value)


def _texts_in(column: str, value: str, *, tagged: bool) -> Iterator[RowText]:
    if not tagged:
        yield RowText(column, value)
        return
    try:
        spans = scan(value, lenient=True)
    except TagError:  # a blank medium, which is an error of the row
        return
    yield from [RowText(column, text, start, tagged=True) for kind, text, start, _ in spans if kind == "text"]


def _is_media(column: str, task: Task) -> bool:
    return media_column(column) is not None or task.map_columns.get(column, "system") != "system"


def question_of(sample: Sample, task: Task, texts: Sequence[RowText]) -> str:
    """Return the text that a row asks: its question, the texts of its content or messages, or those of its inputs."""
    question = sample.columns.get(_QUESTION)
    if isinstance(question, (str, int, float)) and not is_null(question):
        return str(question)
    asked: set[str | None] = {None} if sample.messages else {CONTENT}
    if not sample.messages and CONTENT not in sample.columns and task.assembly is not None:
        slots = task.config.input_columns or task.assembly.template.text_slots
        asked = {name for name in slots if name != task.output_column}
    return "\n".join([text.text for text in texts if text.column in asked])


def facts_of(row: CheckedRow, requests: Sequence[Sequence[Message]]) -> SampleFacts:
    """Return the facts of a row, whose ``requests`` are its messages with their media named."""
    sample = row.sample
    shape = _shape(tuple(sample.columns), tuple(map(kind_of, sample.columns.values())))
    choice = choice_of(row.answer, row.choices, row.task.config.index_base) if row.choices else None
    place = sample.row, sample.file, sample.line, _as_json(sample.id)
    if row.messages is None or row.errors:
        return SampleFacts(*place, shape=shape, choice=choice)
    media = {(medium.modality, medium.name): part_bytes(medium.part) for medium in row.media if medium.part}
    return SampleFacts(
        *place,
        *_digests(row, row.messages),
        None if row.answer is None else _as_json(row.answer),
        shape,
        len(row.question.translate(_UNSEEN).strip()),
        choice,
        len(requests),
        sum([_FRAME + _text_bytes(messages) + sum(media.values()) * 4 // 3 for messages in requests]),
    )


@lru_cache(_SHAPES)
def _shape(columns: Sequence[str], kinds: Sequence[str]) -> str:
    return json.dumps(dict(zip(columns, kinds, strict=True)))


def _digests(row: CheckedRow, messages: Sequence[Message]) -> tuple[bytes, bytes]:
    """Return the digests of what a row asks, and of it with its media.

    It is what its messages say. Where these show examples too, it is what its columns say, but for id and answer.
    """
    media: Sequence[CheckedMedium] = row.media
    if row.task.assembly is not None and row.task.assembly.needs_examples:
        media = [medium for medium in row.media if medium.column is not None]
        left = {*ID_COLUMNS, row.task.output_column, *[medium.column for medium in media]}
        own = {name: value for name, value in row.columns.items() if name not in left}
        tagged = [text.text for text in row.texts if text.tagged]
        texts = json.dumps([own, tagged], sort_keys=True, default=str)
    else:
        texts = "\0".join([f"{message.role}\0{message.text}" for message in messages])
    digest = hashlib.sha256(texts.encode("utf-8", "surrogatepass"))
    sent = digest.copy()
    for medium in media:
        sent.update(medium.digest)
    return digest.digest(), sent.digest()


def digest_of(part: MediaPart) -> bytes:
    """Return the SHA-256 of the bytes of a medium."""
    digest = hashlib.sha256(part.data)
    for frame in part.frames:
        digest.update(frame)
    return digest.digest()


def _text_bytes(messages: Sequence[Message]) -> int:
    return sum([len(message.text.encode("utf-8", "surrogatepass")) for message in messages])


def kind_of(value: object) -> str:
    """Return the kind of a value in words, such as ``"text"``, ``"blank"``, ``"null"`` (also NaN) or ``"number"``."""
    if is_null(value):
        return "null"
    if isinstance(value, str):
        return "text" if value.strip() else "blank"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (int, float)):
        return "number"
    if modality_of(value) is not None:
        return "medium"
    if isinstance(value, Mapping):
        return "object"
    if isinstance(value, (list, tuple)):
        return "blank" if all(is_null(v) or (isinstance(v, str) and not v.strip()) for v in value) else "list"
    return "other"
