"""Forms: rows that answer the same questions have the same requests, but for their values.

The first of such rows is *traced*: the ordinary code makes its messages with stand-ins in the place of its values,
which record what is asked about them. What comes out, with gaps where values stand, is the form. Each further row is
asked the same questions, and fills the form that its answers lead to.

    columns ─► question ─► question ─► … ─► form ─► filled with the row's values
                 (a tree, for rows with the same columns and types)

A row that has no form is *walked*: the same code makes its messages from its values themselves. That is the case where
a value decides in a way that no question covers, and where the row has an error, whose place only the walk knows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import takewhile
from math import isnan
from operator import itemgetter
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from mmprompt.errors import MMPromptError
from mmprompt.messages import Asked, MediaRef, Message, Part, Pieces, Place, TextPart, Trace, Value, blank, stands_in
from mmprompt.segments import kinds_of, scan, segments_in

if TYPE_CHECKING:
    from mmprompt.datasets.sample import Sample
    from mmprompt.icl.assembly import Assembly
    from mmprompt.tasks.task import Messages

MOST_FORMS = 1024
"""How many forms a tree keeps. When there are more, all are made anew."""

MOST_OF_A_KIND = 4096
"""How many questions lead to those for rows of the same columns and types. When there are more, they are walked."""

ROW_FAULTS = (MMPromptError, MemoryError)
"""Errors of a row."""

FAULTS = (*ROW_FAULTS, TypeError, ValueError, LookupError, AttributeError, RecursionError)
"""What ends a trace, or the filling of a form. The walk then gives the messages, or the error with its place."""

Seen = dict[object, object]
"""What the questions about a row found: the segments of its tagged columns, and further things of the caller's."""

Getter = Callable[[Mapping[str, object], Seen], object]
"""Gives a value of a row, from its columns and what was seen of it."""

MEDIA = "\0media"
"""No column: the media of a row are seen under it, and the places of what is known of them begin with it."""

_F = TypeVar("_F")
_new = tuple.__new__  # half the time of the class, and this runs for every row


class _Branch:
    """A question about a row, and where each answer leads: to another branch, to a form, or to None, the walk.

    ``covers`` are the questions of traces that it asks, by place. ``reads``: it opens a file.
    """

    __slots__ = ("answers", "ask", "asked", "covers", "question", "reads")

    def __init__(self, ask: Getter, asked: Sequence[Asked]) -> None:
        self.ask = ask
        self.answers: dict[Hashable, Any] = {}
        self.asked = [(one.place, one.question) for one in asked]
        self.covers = frozenset(self.asked)
        self.question = asked[0]
        self.reads = self.question.place[0] == MEDIA and len(self.question.place) == 2

    def answer(
        self, row: Sample, known: Mapping[tuple[Place, Callable[[Any], Hashable]], Hashable], seen: Seen
    ) -> Hashable:
        """Return the answer of a row that was traced, from those that its trace gave; asks for the others."""
        if self.question.question is segments_in or not self.covers <= known.keys():
            return self.ask(row.columns, seen)
        return _together([known[one] for one in self.asked], self.question)

    def ask_all(self, every: Sequence[Mapping[str, object]], seen: Sequence[Seen]) -> Hashable:
        """Return the answer of rows if it is the same for all of them, else ``NOT_YET``."""
        place, question, _ = self.question
        answers: Iterator[Hashable]
        if question is blank and len(place) == 1:
            if _none_blank(every, [place[0] for place, _ in self.asked]):
                return False
            answers = map(self.ask, every, seen)
        elif len(self.asked) > 1 or len(place) > 1 or question is segments_in:
            answers = map(self.ask, every, seen)
        else:
            name: Any = place[0]
            answers = map(question, map(itemgetter(name), every))
        first = next(answers)
        return first if all(answer == first for answer in answers) else _NotYet


def _none_blank(every: Sequence[Mapping[str, object]], names: Sequence[Any]) -> bool:
    """Return whether the values of columns are texts, and none of them is blank."""
    for name in names:
        texts: list[Any] = [columns[name] for columns in every]
        try:
            if "" in texts or any(map(str.isspace, texts)):
                return False
        except TypeError:  # a number among them
            return False
    return True


class _NotYet:
    """Leads nowhere: no such row was traced."""


class FormTree(Generic[_F]):
    """The forms of rows by their answers. Safe to share between threads; a pickled copy starts empty."""

    def __init__(self) -> None:
        self.roots: dict[Hashable, Any] = {}
        self._count = 0
        self._of_kind: Counter[Hashable] = Counter()
        self._lock = Lock()

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), ())

    def __len__(self) -> int:
        return self._count

    def find(self, root: Any, columns: Mapping[str, object], seen: Seen) -> Any:
        """Return the form of a row, None if it is walked, or ``NOT_YET``; fails with one of ``FAULTS``.

        Args:
            root: what ``roots`` has for the ``key_of`` of the row; ``NOT_YET`` if it has nothing.
            columns: those of the row.
            seen: what the questions find is added here.
        """
        node = root
        while type(node) is _Branch:
            node = node.answers.get(node.ask(columns, seen), _NotYet)
        return node

    def keep(
        self,
        row: Sample,
        key: Hashable,
        asked: Sequence[Asked],
        form: _F | None,
        asker: Callable[[Asked], Getter | None] = lambda _: None,
    ) -> None:
        """Keep the form of a row behind the questions that lead to it.

        Args:
            row: the row that was traced.
            key: its ``key_of``.
            asked: the questions of the trace.
            form: what the trace gave; None if such rows are walked.
            asker: gives what asks a question of the caller's own, None for the others.

        Raises:
            MMPromptError: a question fails the second time.
        """
        with self._lock:
            if self._count >= MOST_FORMS:
                self.roots, self._count = {}, 0
                self._of_kind.clear()
            self._count += 1
            self._of_kind[key] += len(asked)
            if self._of_kind[key] > MOST_OF_A_KIND:  # their values differ in ways that hardly come again
                self.roots[key] = None
                return
            answers, answer = self.roots, key
            covered: set[tuple[Place, object]] = set()
            known = {(one.place, one.question): one.answer for one in asked}
            seen: Seen = {}
            while type(node := answers.get(answer)) is _Branch:  # others asked before
                covered |= node.covers
                answers, answer = node.answers, node.answer(row, known, seen)
            left = [one for one in asked if (one.place, one.question) not in covered]
            if form is None:  # no file is read to find out that a row is walked
                left = list(takewhile(lambda one: one.place[0] != MEDIA, left))
            for several in _grouped(left):
                ask = asker(several[0]) or (_asker(several[0]) if len(several) == 1 else _asker_of_all(several))
                branch = answers[answer] = _Branch(ask, several)
                answers, answer = branch.answers, _together([one.answer for one in several], several[0])
            answers[answer] = form


def _grouped(asked: Sequence[Asked]) -> Iterator[Sequence[Asked]]:
    """Yield questions in groups that are asked at once, as they cost less.

    One group are the questions for blank texts in columns, and the same question about elements of one list. No
    question comes before the medium or the segments that were asked for before it.
    """
    groups: dict[Hashable, list[Asked]] = {}
    for one in asked:
        place, question, _ = one
        if place[0] == MEDIA or question is segments_in:
            yield from groups.values()
            groups = {}
            yield [one]
            continue
        about = place[:-1] if len(place) > 1 or question is blank else place
        groups.setdefault((about, len(place), question), []).append(one)
    yield from groups.values()


def _together(answers: Sequence[Hashable], first: Asked) -> Hashable:
    """Return the answer of a group of questions, of which ``first`` is the first; False if no column is blank."""
    if len(answers) == 1:
        return answers[0]
    return tuple(answers) if first.question is not blank or len(first.place) > 1 or any(answers) else False


def _asker_of_all(asked: Sequence[Asked]) -> Getter:
    """Return what asks a group of questions."""
    place, question, _ = asked[0]
    name: Any = place[0]
    if len(place) == 1:
        return _asker_of_blanks([one.place[0] for one in asked])
    if len(place) == 2:
        elements_of = itemgetter(*[one.place[1] for one in asked])
        return lambda columns, _: tuple(map(question, elements_of(columns[name])))  # type: ignore[arg-type]  # a list
    if place[-2] is None:
        held, numbers = name if len(place) == 3 else place[:-2], [cast("int", one.place[-1]) for one in asked]

        def of_segments(_: Mapping[str, object], seen: Seen) -> Hashable:
            spans: Any = seen[held]
            return tuple([question(spans[number][1]) for number in numbers])

        return of_segments
    getters = [getter(one.place) for one in asked]
    return lambda columns, seen: tuple([question(get(columns, seen)) for get in getters])


def _asker_of_blanks(names: Sequence[Any]) -> Getter:
    """Return what asks whether texts in columns are blank: False if none is, else the answer for each."""
    values_of = itemgetter(*names)

    def ask(columns: Mapping[str, object], _: Seen) -> Hashable:
        values = values_of(columns)
        try:
            if "" not in values and not any(map(str.isspace, values)):
                return False
        except TypeError:  # a number among them
            pass
        return tuple(map(blank, values)) if any(map(blank, values)) else False

    return ask


NOT_YET = _NotYet
Branch = _Branch


def key_of(row: Sample) -> Hashable:
    """Return what rows must have in common before any question: their columns, and the types of their values."""
    columns = row[0]
    return (row[5], *columns, *map(type, columns.values()))


def has_forms(assembly: Assembly | None) -> bool:
    """Return whether rows have forms: which examples a row gets, and how many, must not depend on its values."""
    return assembly is None or (assembly.same_examples and assembly.arguments.get("max_seq_len") is None)


def stand_ins(columns: Mapping[str, object], trace: Trace) -> dict[str, object]:
    """Return the columns of a row with what stands for each value."""
    return {name: _stand_in(value, (name,), trace) for name, value in columns.items()}


def _stand_in(value: object, place: Place, trace: Trace) -> object:
    """Return what stands for a value. A list stays a list, whose length and types are asked for; so does None."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        kinds = trace.ask(place, kinds_in, value)
        for number, kind in enumerate(kinds):
            trace.know((*place, number), blank, kind == "")
        return type(value)([_stand_in(item, (*place, number), trace) for number, item in enumerate(value)])
    if type(value) is bool:
        return trace.ask(place, bool, value)
    if type(value) is float and trace.ask(place, isnan, value):
        return value  # a missing value, as None
    if isinstance(value, (str, int, float)) and type(value) not in (str, int, float):
        trace.is_plain = False  # a subclass may say something else as text
    return Value(value, place, trace)


def kinds_in(values: Sequence[object]) -> tuple[object, ...]:
    """Return the types of the elements of a list, and an empty text for one that is blank."""
    return tuple(["" if type(v) is str and (not v or v.isspace()) else type(v) for v in values])


def _asker(asked: Asked) -> Getter:
    """Return what asks a row a question."""
    place, question = asked.place, asked.question
    column: Any = place[0]
    if question is segments_in:
        get = None if len(place) == 1 else getter(place)
        held = column if len(place) == 1 else place

        def segments(columns: Mapping[str, object], seen: Seen) -> Hashable:
            text: Any = columns[column] if get is None else get(columns, seen)
            spans = seen[held] = scan(text)
            return kinds_of(spans)

        return segments
    if len(place) == 1:
        return lambda columns, _: question(columns[column])
    get = getter(place)
    return lambda columns, seen: question(get(columns, seen))


def getter(place: Place) -> Getter:
    """Return what gives the value at a place of a row."""
    first: Any = place[0]
    if first == MEDIA:
        medium: Any = place[1]
        name: Any = place[2]

        def fact(_: Mapping[str, object], seen: Seen) -> object:
            media: Any = seen[MEDIA]
            return getattr(media[medium], name)

        return fact
    if None in place:
        at = place.index(None)
        held, number = first if at == 1 else place[:at], place[at + 1]

        def segment(_: Mapping[str, object], seen: Seen) -> object:
            spans: Any = seen[held]
            return spans[number][1]

        return segment
    steps: Any = place[1:]
    if not steps:
        return lambda columns, _: columns[first]

    def get(columns: Mapping[str, object], _: Seen) -> object:
        value: Any = columns[first]
        for step in steps:
            value = value[step]
        return value

    return get


def text_getter(text: object) -> Getter:
    """Return what gives the text that ``Value`` or ``Pieces`` stand for."""
    if type(text) is Value:
        return getter(text.place)
    if type(text) is not Pieces:
        raise TypeError
    getters: list[Any] = [getter(piece.place) if stands_in(piece) else piece for piece in text.pieces]
    return lambda columns, seen: "".join([g if type(g) is str else str(g(columns, seen)) for g in getters])


class MessageForms:
    """The messages of a task's samples, by their forms.

    Args:
        make: makes the messages of a sample, one for each of its requests.
        usable: whether the rows of the task have forms.
    """

    def __init__(self, make: Callable[[Sample], list[Messages]], *, usable: bool) -> None:
        self._make = make
        self._usable = usable
        self._tree: FormTree[list[Callable[[Mapping[str, object], Seen], Messages]]] = FormTree()

    def of(self, sample: Sample) -> list[Messages]:
        """Return the messages of a sample, for each of its requests.

        Raises:
            MMPromptError: the messages cannot be made.
        """
        if not self._usable or sample.messages is not None or sample.folder is not None:
            return self._make(sample)
        seen: Seen = {}
        key = key_of(sample)
        try:
            form = self._tree.find(self._tree.roots.get(key, NOT_YET), sample.columns, seen)
            if form is NOT_YET:
                form = self._traced(sample, key)
                self._tree.find(self._tree.roots.get(key), sample.columns, seen)
            if form is not None:
                return [fill(sample.columns, seen) for fill in form]
        except FAULTS:
            pass
        return self._make(sample)

    def _traced(self, sample: Sample, key: Hashable) -> list[Callable[[Mapping[str, object], Seen], Messages]] | None:
        trace = Trace()
        form = None
        try:
            made = self._make(sample._replace(columns=stand_ins(sample.columns, trace)))
            form = [_filling(messages) for messages in made] if trace.is_plain else None
        except ROW_FAULTS:
            return None  # other rows with these answers may have none
        except FAULTS:
            pass  # a stand-in cannot be used so, whatever the row
        self._tree.keep(sample, key, trace.asked, form)
        return form


def _filling(messages: Messages) -> Callable[[Mapping[str, object], Seen], Messages]:
    """Return what fills the messages of one request."""
    if isinstance(messages, dict):
        labels = {label: _filling(own) for label, own in messages.items()}
        return lambda columns, seen: {label: fill(columns, seen) for label, fill in labels.items()}  # type: ignore[misc]  # lists
    every = [(message, _changing(message)) for message in messages]

    def fill(columns: Mapping[str, object], seen: Seen) -> Messages:
        made = []
        for message, changing in every:
            if not changing:
                made.append(message)
                continue
            parts: list[Part] = [*message.parts]
            for at, change in changing:
                parts[at] = change(columns, seen)  # type: ignore[call-overload]  # a part
            role, _, name, calls, call_id = message
            made.append(_new(Message, (role, tuple(parts), name, calls, call_id)))
        return made

    return fill


def _changing(message: Message) -> list[tuple[int, Getter]]:
    """Return the numbers of the parts of a message in which values stand, each with what makes it."""
    if any(holds_stand_in(value) for value in (message.role, *message[2:])):
        raise TypeError
    found: list[tuple[int, Getter]] = []
    if message.tool_calls:  # each row has its own, which its caller may change
        raise TypeError
    for at, part in enumerate(message.parts):
        kept: Sequence[object] = part
        if type(part) is TextPart and type(part.text) is not str:
            found.append((at, _text_part(part)))
            kept = part[1:]
        elif type(part) is MediaRef and type(part.source) in (Value, Pieces):
            found.append((at, _media_ref(part)))
            kept = (part[0], *part[2:])
        if any(map(holds_stand_in, kept)) or _holds_containers(part):  # no row fills these; each has its own
            raise TypeError
    return found


def _holds_containers(part: Part) -> bool:
    """Return whether the options or further keys of a part hold lists or mappings."""
    extra = () if type(part) is TextPart else part.options  # type: ignore[union-attr]  # a medium
    return any(isinstance(value, (list, dict)) for _, value in (*extra, *part.extra))


def holds_stand_in(value: object) -> bool:
    """Return whether a value, or one in it, stands for one of a row."""
    if type(value) in (tuple, list):
        return any(map(holds_stand_in, value))  # type: ignore[call-overload]  # a list
    if type(value) is dict:
        return any(map(holds_stand_in, value.values()))
    return stands_in(value) or type(value) is Pieces


def _text_part(part: TextPart) -> Getter:
    get, extra = text_getter(part.text), part.extra
    return lambda columns, seen: _new(TextPart, (get(columns, seen), extra))


def _media_ref(part: MediaRef) -> Getter:
    modality, source, form, options, extra, name = part
    get = text_getter(source)
    return lambda columns, seen: _new(MediaRef, (modality, get(columns, seen), form, options, extra, name))
