"""Plans of messages: rows of one shape differ only in values, so their messages are put together once.

The first rows of a shape go through templates and meta template, one of them with a mark in the place of each value.
Later rows put their values in the places of the marks. A row that does not fit goes the long way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mmprompt.errors import MMPromptError
from mmprompt.media.sources import classify_or_path
from mmprompt.messages import MediaRef, Message, Part, TextPart
from mmprompt.tasks.shapes import Shape, Unplannable, has_shapes, shape_of

if TYPE_CHECKING:
    from mmprompt.datasets.sample import Sample
    from mmprompt.tasks.task import Messages, Task

_new = tuple.__new__  # half the time of the class, and this runs for every row
_ROWS_BEFORE = 2
_PROOFS = 2
_MOST_SHAPES = 1000


class _Place(NamedTuple):
    """A part of a message in which values stand: in a text between the pieces of ``form``, or as a medium's source."""

    at: int
    part: TextPart | MediaRef
    form: str
    values: tuple[int, ...]


class _Plan:
    """The messages of the rows of one shape, with the places of their values."""

    def __init__(self, shape: Shape, messages: Sequence[Message], marks: Sequence[str]) -> None:
        self.shape = shape
        self.proofs = 0
        self._messages = [(message, _places(message, marks)) for message in messages]

    @property
    def sources(self) -> frozenset[int]:
        """The numbers of the values that name media."""
        every = [place for _, places in self._messages for place in places]
        return frozenset([place.values[0] for place in every if type(place.part) is MediaRef])

    def filled(self, values: Sequence[str]) -> list[Message] | None:
        """Return the messages of a row with these values; None if it goes the long way."""
        messages = []
        for message, places in self._messages:
            if not places:
                messages.append(message)
                continue
            role, parts, name, calls, call_id = message
            filled: list[Part] = [*parts]
            for at, part, form, numbers in places:
                if type(part) is TextPart:
                    text = form % tuple([values[number] for number in numbers])
                    filled[at] = _new(TextPart, (text, part.extra))
                    continue
                source = values[numbers[0]]
                if classify_or_path(source) == "base64":  # a template gives it the form of a data URI
                    return None
                modality, _, kind, options, extra, wire_name = part  # type: ignore[misc]  # a MediaRef
                filled[at] = _new(MediaRef, (modality, source, kind, options, extra, wire_name))
            messages.append(_new(Message, (role, tuple(filled), name, calls, call_id)))
        return messages


class MessagePlans:
    """The messages of a task's samples, by a plan where their shape has one. For one iteration.

    Args:
        task: the task.
        make: makes the messages of a sample the long way.
    """

    def __init__(self, task: Task, make: Callable[[Sample], list[Messages]]) -> None:
        self._task = task
        self._make = make
        self._able = task.assembly is not None and has_shapes(task.assembly)  # without a template little is to be made
        self._shapes: dict[tuple[str, ...], _Plan | int] = {}

    def of(self, sample: Sample) -> list[Messages]:
        """Return the messages of a sample, for each of its requests.

        Raises:
            MMPromptError: as on the long way.
        """
        if not self._able or sample.messages is not None or sample.folder is not None:
            return self._make(sample)
        columns = tuple(sample.columns)
        plan = self._shapes.get(columns, 0)
        if not isinstance(plan, _Plan):
            made = self._make(sample)
            if plan < _ROWS_BEFORE and len(self._shapes) < _MOST_SHAPES:
                self._shapes[columns] = (plan + 1 < _ROWS_BEFORE and plan + 1) or self._plan(sample) or _ROWS_BEFORE
            return made
        values = plan.shape.values(sample.columns)
        filled = None if values is None else plan.filled(values)
        if filled is None:
            return self._make(sample)
        if plan.proofs == _PROOFS:
            return [filled]
        made = self._make(sample)
        plan.proofs += 1
        if not _same(made, [filled]):
            self._shapes[columns] = _ROWS_BEFORE
        return made

    def _plan(self, sample: Sample) -> _Plan | None:
        """Return the plan of a sample's shape; None if it has none."""
        try:
            shape = shape_of(sample, self._task.assembly, self._task.config)
            marks = shape.marks()
            plan = _Plan(shape, self._walk(sample, shape, marks), marks)
            odd = shape.marks(odd=True, sources=plan.sources)
            filled = plan.filled(odd)
            return plan if filled is not None and _same([filled], [self._walk(sample, shape, odd)]) else None
        except (Unplannable, MMPromptError, TypeError, ValueError):
            return None

    def _walk(self, sample: Sample, shape: Shape, marks: Sequence[str]) -> list[Message]:
        """Return the messages of a sample with marks in the places of its values."""
        (messages,) = self._make(sample._replace(columns=shape.marked(marks)))
        if not isinstance(messages, list):
            raise Unplannable
        return messages


def _places(message: Message, marks: Sequence[str]) -> list[_Place]:
    """Return the places of marks in a message.

    Raises:
        Unplannable: a mark stands where no value can be put.
    """
    every = "(" + "|".join(map(re.escape, sorted(marks, key=len, reverse=True))) + ")" if marks else "(?!)()"
    places = []
    rest: list[object] = [message.role, *message[2:]]
    for at, part in enumerate(message.parts):
        if type(part) is TextPart:
            pieces = re.split(every, part.text)
            form = "%s".join([piece.replace("%", "%%") for piece in pieces[::2]])
            numbers = tuple([marks.index(piece) for piece in pieces[1::2]])
            rest += part[1:]
        elif type(part) is MediaRef:
            form, numbers = "", (marks.index(part.source),) if part.source in marks else ()
            rest += [part.modality, *part[2:], None if numbers else part.source]
        else:
            raise Unplannable
        if numbers:
            places.append(_Place(at, part, form, numbers))
    if any(mark in str(value) for mark in marks for value in rest):
        raise Unplannable
    return places


def _same(one: Sequence[Messages], other: Sequence[Messages]) -> bool:
    """Return whether messages are the same, the types of their parts and sources included."""
    return one == other and _types(one) == _types(other)


def _types(several: Sequence[Messages]) -> list[object]:
    return [
        [(type(part), type(part[0]), type(part[1])) for message in messages for part in message.parts]
        for messages in several
        if isinstance(messages, list)
    ]
