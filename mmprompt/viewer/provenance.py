"""Which characters of a prompt came from its row, which from an in-context example, and which from the template.

The prompt is made a second time, from a copy of the row in which each character of its texts is replaced by another
one that no text has. The two prompts are then compared character by character: where they differ, the row spoke.
Nobody sees the second prompt. If the two do not agree otherwise, for example because a Jinja text compares a value,
the origin of the texts is unknown, and is shown as unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Literal, NamedTuple

from mmprompt.datasets.media_columns import media_column
from mmprompt.datasets.sample import Sample
from mmprompt.errors import MMPromptError
from mmprompt.icl.assembly import Assembled
from mmprompt.messages import Message, TextPart
from mmprompt.segments import scan
from mmprompt.tasks.task import Task
from mmprompt.templates.sample_view import SampleView

Origin = Literal["template", "row", "example", "unknown"]


class Span(NamedTuple):
    """A stretch of text of one origin."""

    origin: Origin
    text: str


class _Disguise(dict[int, int]):
    """Maps a character to another one of the same private plane; those that the plane lacks share one."""

    def __init__(self, plane: int) -> None:
        super().__init__()
        self._plane = plane << 16

    def __missing__(self, character: int) -> int:
        self[character] = self._plane + min(character, 0xFFFD)
        return self[character]


_ROW, _EXAMPLE = _Disguise(15), _Disguise(16)


class Provenance:
    """Tells the texts of a task's rows apart by their origin."""

    def __init__(self, task: Task) -> None:
        self._task = task
        assembly = task.assembly
        self._media = set() if assembly is None else set(assembly.template.media_slots)

    def texts(self, sample: Sample, prompts: Iterable[Assembled]) -> list[list[Span]] | None:
        """Return the spans of all texts of a row's requests, in order; None if their origin is unknown.

        ``prompts`` are those of the row, with the examples that they show.
        """
        made = list(prompts)
        texts = _texts(self._messages(made) if self._task.assembly else [self._task.plain_messages(sample)])
        for numbers in (True, False):
            try:
                disguised = self._disguised(sample, made, numbers=numbers)
            except (MMPromptError, TypeError, ValueError, LookupError, ArithmeticError):
                continue  # a template that computes with its row
            spans = [_spans(*pair) for pair in zip(texts, disguised, strict=False)]
            if len(texts) == len(disguised) and None not in spans:
                return [found for found in spans if found is not None]
        return None

    def _messages(self, prompts: Iterable[Assembled]) -> list[list[Message]]:
        found = [self._task.messages_of(made) for made in prompts]
        return [one for each in found for one in (each.values() if isinstance(each, dict) else [each])]

    def _disguised(self, sample: Sample, prompts: list[Assembled], *, numbers: bool) -> list[str]:
        """Return the texts of the requests of the row in disguise."""
        hidden = self._hidden(sample, numbers)
        assembly = self._task.assembly
        if assembly is None:
            return _texts([self._task.plain_messages(hidden)])
        ids = prompts[0].example_ids if prompts else ()
        return _texts(self._messages(assembly.with_examples(hidden, ids, lambda text: text.translate(_EXAMPLE))))

    def _hidden(self, sample: Sample, numbers: bool) -> Sample:
        view = sample_view(sample, self._task)
        kept = {*self._media, *self._task.map_columns}
        columns = {
            name: value
            if media_column(name) or (name in kept and self._task.map_columns.get(name) != "system")
            else _disguise(value, numbers, tagged=isinstance(value, str) and _is_tagged(view, name))
            for name, value in sample.columns.items()
        }
        messages = None if sample.messages is None else tuple(map(_disguised_message, sample.messages))
        return sample._replace(columns=columns, messages=messages)


def sample_view(sample: Sample, task: Task) -> SampleView:
    """Return a sample as the templates of its task see it."""
    named = task.config.tagged_columns
    tagged = None if named is None else frozenset(named)
    return SampleView(sample.columns, scanned=sample.scanned, tagged=tagged)


def _is_tagged(view: SampleView, column: str) -> bool:
    return view.segments(column) is not None


def _disguise(value: object, numbers: bool, *, tagged: bool = False) -> object:
    """Return a value of a row whose texts are disguised; tags and the names of media stay."""
    if isinstance(value, str):
        return _disguised_segments(value) if tagged else value.translate(_ROW)
    if isinstance(value, (int, float)) and numbers:
        return str(value).translate(_ROW)
    if isinstance(value, (list, tuple)):
        return type(value)([_disguise(item, numbers) for item in value]) if type(value) in (list, tuple) else value
    if isinstance(value, Mapping) and value.get("type") == "text":
        return {**value, "text": _disguise(value.get("text"), numbers)}
    return value


def _disguised_segments(value: str) -> str:
    pieces, position = [], 0
    for modality, text, start, _ in scan(value):
        if modality == "text":
            pieces += [value[position:start], text.translate(_ROW)]
            position = start + len(text)
    return "".join([*pieces, value[position:]])


def _disguised_message(message: Message) -> Message:
    parts = [p._replace(text=p.text.translate(_ROW)) if isinstance(p, TextPart) else p for p in message.parts]
    return message._replace(parts=tuple(parts))


def _texts(requests: Iterable[list[Message]]) -> list[str]:
    return [
        part.text
        for messages in requests
        for message in messages
        for part in message.parts
        if isinstance(part, TextPart)
    ]


def _spans(text: str, disguised: str) -> list[Span] | None:
    """Return the spans of a text; None if the disguised one is not the same text in disguise."""
    if len(text) != len(disguised):
        return None
    origins: list[Origin] = []
    for plain, seen in zip(text, disguised, strict=True):
        code = ord(seen)
        if plain == seen:
            origins.append("template")
        elif code == _ROW[ord(plain)]:
            origins.append("row")
        elif code == _EXAMPLE[ord(plain)]:
            origins.append("example")
        else:
            return None
    position, spans = 0, []
    for origin, run in groupby(origins):
        length = sum(1 for _ in run)
        spans.append(Span(origin, text[position : position + length]))
        position += length
    return spans
