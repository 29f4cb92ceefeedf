"""Which stretches of a prompt came from its row, which from an in-context example, and which from the template.

The messages of the row are made a second time, with stand-ins in the place of its values and of the texts of its
examples: see ``tasks.forms``. A text that a template computes, such as Jinja's, is of one origin as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from mmprompt.datasets.sample import Sample
from mmprompt.icl.assembly import Assembled
from mmprompt.messages import COMPUTED, Message, Pieces, TextPart, Trace, Value, stands_in
from mmprompt.tasks.forms import FAULTS, stand_ins
from mmprompt.tasks.task import Task
from mmprompt.templates.sample_view import SampleView

Origin = Literal["template", "row", "example", "computed"]

_EXAMPLE = "\0example"
"""No column: where the texts of examples stand."""


class Span(NamedTuple):
    """A stretch of text of one origin; ``columns`` are those that a computed text was made of."""

    origin: Origin
    text: str
    columns: tuple[str, ...] = ()


class Provenance:
    """Tells the texts of a task's rows apart by their origin."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def texts(self, sample: Sample, prompts: Iterable[Assembled]) -> list[list[Span]] | None:
        """Return the spans of all texts of a row's requests, in order; None if their origin is unknown.

        ``prompts`` are those of the row, with the examples that they show.
        """
        try:
            messages = self._messages(sample, list(prompts))
        except FAULTS:
            return None
        parts = [part for one in messages for message in one for part in message.parts]
        return [_spans(part.text) for part in parts if isinstance(part, TextPart)]

    def _messages(self, sample: Sample, prompts: list[Assembled]) -> list[list[Message]]:
        """Return the messages of the row's requests with stand-ins in their texts."""
        trace = Trace()
        columns = stand_ins(sample.columns, trace)
        hidden = sample._replace(columns=columns, messages=sample.messages and _marked(sample.messages, trace))
        assembly = self._task.assembly
        if assembly is None:
            return [self._task.plain_messages(hidden)]
        ids = prompts[0].example_ids if prompts else ()
        made = assembly.with_examples(hidden, ids, lambda text: Value(text, (_EXAMPLE,), trace))  # type: ignore[arg-type, return-value]  # it stands for a text
        found = [self._task.messages_of(one) for one in made]
        return [one for each in found for one in (each.values() if isinstance(each, dict) else [each])]


def sample_view(sample: Sample, task: Task) -> SampleView:
    """Return a sample as the templates of its task see it."""
    named = task.config.tagged_columns
    tagged = None if named is None else frozenset(named)
    return SampleView(sample.columns, scanned=sample.scanned, tagged=tagged)


def _marked(messages: tuple[Message, ...], trace: Trace) -> tuple[Message, ...]:
    """Return the messages of a chat with stand-ins for their texts."""

    def marked(part: object) -> object:
        return part._replace(text=Value(part.text, ("messages",), trace)) if isinstance(part, TextPart) else part  # type: ignore[arg-type]  # it stands for a text

    return tuple([message._replace(parts=tuple(map(marked, message.parts))) for message in messages])  # type: ignore[arg-type]  # parts


def _spans(text: object) -> list[Span]:
    """Return the spans of a text; neighbours of one origin are one span."""
    spans: list[Span] = []
    for piece in text.pieces if type(text) is Pieces else (text,):
        span = _span(piece)
        if spans and spans[-1].origin == span.origin and not span.columns:
            span = span._replace(text=spans.pop().text + span.text)
        spans.append(span)
    return spans


def _span(piece: object) -> Span:
    if not stands_in(piece):
        return Span("template", str(piece))
    first = piece.place[0]
    if first == COMPUTED:
        return Span("computed", str(piece.real), tuple(map(str, piece.place[1:])))
    return Span("example" if first == _EXAMPLE else "row", str(piece.real))
