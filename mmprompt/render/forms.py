"""The requests of rows as JSON, by their forms; see ``tasks.forms``.

A medium is read while a row is asked its questions: what a writer may decide by (its media type) is an answer. All else
of it is a stand-in, which a writer can only put into the request.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import groupby, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import orjson

from mmprompt.datasets.sample import ID_COLUMNS
from mmprompt.messages import Asked, Hole, MediaPart, MediaRef, Place, Trace, Value, stands_in
from mmprompt.render.media import notes_of
from mmprompt.render.wire_request import LinesTogether, RowLines, WireRequest
from mmprompt.targets.limits import check_media, limits
from mmprompt.targets.wire_json import EncodedJSON, Payload, filled_chunks, json_leaves, keyed
from mmprompt.tasks.forms import (
    FAULTS,
    MEDIA,
    NOT_YET,
    ROW_FAULTS,
    Branch,
    FormTree,
    Getter,
    Seen,
    getter,
    has_forms,
    holds_stand_in,
    key_of,
    stand_ins,
    text_getter,
)

if TYPE_CHECKING:
    from mmprompt.datasets.sample import Sample
    from mmprompt.render.builder import RequestBuilder

_MOST_KEPT = 64 << 20
"""The most bytes of media of all rows, such as those of examples, that are kept with their base64."""

_ID, _READ = object(), object()
"""What is seen of a row beside its columns: its id, and what reads its media where they are counted."""

_EXACT = (str, int, type(None))
_new = tuple.__new__  # half the time of the class, and this runs for every row


class Form(NamedTuple):
    """The requests of rows that give the same answers.

    ``line`` is their line, if it is one without further keys, and ``named`` the column of its id, if it has one.
    ``most`` is how many bytes a request may have.
    """

    requests: tuple[RequestForm, ...]
    line: _Gaps | None
    named: str | None
    most: int | None

    def takes(self, rows: Sequence[Sample]) -> bool:
        """Return whether the lines of rows are the form's: where their ids stand in its column, and are exact."""
        if self.line is None or not all(type(row[1]) in _EXACT for row in rows):
            return False
        named = self.named
        return named is None or all(row[0].get(named) is row[1] for row in rows)


def _line(row: Sample, text: bytes, payloads: list[Payload]) -> RowLines:
    """Return the line of a row, and notes on its media."""
    if not payloads:
        return row, [text], ()
    found = [payload.part for payload in payloads if payload.part.findings]
    return row, filled_chunks(text, payloads), tuple(notes_of(found))


class Forms:
    """The forms of one ``RequestBuilder``. Safe to share between threads; a pickled copy starts without forms."""

    def __init__(self, builder: RequestBuilder, *, usable: bool = True) -> None:
        self._builder = builder
        costly = builder.media.decodes or builder.media.reader.policy.fetch  # a trace reads its media once more
        self._usable = usable and not costly and has_forms(builder.task.assembly)
        self._tree: FormTree[Form] = FormTree()
        self._counted: set[Hashable] = set()  # rows with so many media that they are counted
        self._room = _MOST_KEPT

    def __len__(self) -> int:
        return len(self._tree)

    def requests(self, row: Sample) -> list[WireRequest] | None:
        """Return the requests of a row; None if it is walked."""
        seen: Seen = {}
        form = self._form(row, seen) if self._usable else None
        if form is None:
            return None
        try:
            return [request.wire(row.columns, seen) for request in form.requests]
        except FAULTS:
            return None

    def line(self, row: Sample, key: Hashable = None) -> RowLines | list[WireRequest] | None:
        """Return the line of a row as ``--emit messages`` writes it, or its requests; None if it is walked.

        A line has no key beside id, messages and answer. ``key`` is the ``key_of`` of the row, if it is known.
        """
        name = row.id
        seen: Seen = {_ID: name}
        form = self._form(row, seen, key)
        if form is None:
            return None
        columns, line, named = row.columns, form.line, form.named
        own = named is None or columns.get(named) is name  # --map may take it from another column
        try:
            if line is None or type(name) not in _EXACT or not own:
                return [request.wire(columns, seen) for request in form.requests]
            text, payloads = line.filled(columns, seen)
            if form.most is not None:
                check_size(text, payloads, form.most)
        except FAULTS:
            return None
        return _line(row, text, payloads)

    def lines(
        self, rows: Sequence[Sample]
    ) -> Iterator[LinesTogether | tuple[Sample, RowLines | list[WireRequest] | None]]:
        """Yield the lines of neighbouring rows together, or a row and its ``line``.

        Their questions are asked before the first file is read, which drives code out of the processor's cache.
        """
        for key, pairs in groupby(zip(map(key_of, rows), rows, strict=True), itemgetter(0)):
            together = [row for _, row in pairs]
            seen: list[Seen] = [{_ID: row[1]} for row in together]
            form, reader, texts = self._alike(together, key, seen)
            if form is None:
                yield from zip(together, map(self.line, together, repeat(key)), strict=True)
            elif reader is None:
                yield _new(LinesTogether, (together, texts))
            else:
                for row, text, own in zip(together, texts, seen, strict=True):
                    yield row, self._with_file(row, text, own, form, reader)

    def _alike(
        self, rows: Sequence[Sample], key: Hashable, seen: Sequence[Seen]
    ) -> tuple[Form | None, Branch | None, list[bytes]]:
        """Return the form of rows that all answer alike, what reads their only file, and their lines.

        The form is None if they do not answer alike, or have no form yet.
        """
        node: Any = NOT_YET if key in self._counted else self._tree.roots.get(key)
        if type(node) is not Branch:
            return None, None, []
        every = [row[0] for row in rows]
        try:
            while type(node) is Branch and not node.reads:
                node = node.answers.get(node.ask_all(every, seen), NOT_YET)
            reader = node if type(node) is Branch and len(node.answers) == 1 else None
            (form,) = (node,) if reader is None else reader.answers.values()
            if type(form) is Form and form.takes(rows):
                texts = form.line.texts(every, seen)  # type: ignore[union-attr]  # takes has looked
                if reader is not None or form.most is None or max(map(len, texts)) <= form.most:
                    return form, reader, texts
        except FAULTS:
            pass
        return None, None, []

    def _with_file(
        self, row: Sample, text: bytes, seen: Seen, form: Form, reader: Branch
    ) -> RowLines | list[WireRequest] | None:
        """Return the line of a row whose only file is read now; another answer than the known one takes another form.

        ``text`` is its line, of ``form``, if its file gives the known answer. ``seen`` is what its questions found.
        """
        try:
            if reader.answers.get(reader.ask(row[0], seen)) is not form or form.line is None:
                return self.line(row)
            payloads = form.line.payloads(seen)
            if form.most is not None:
                check_size(text, payloads, form.most)
        except FAULTS:
            return None
        return _line(row, text, payloads)

    def _form(self, row: Sample, seen: Seen, key: Hashable = None) -> Form | None:
        """Return the form of a row, whose media are then read; None if it is walked."""
        if not self._usable:
            return None
        if key is None:
            key = key_of(row)
        try:
            form = self._found(row, key, seen)
            if form is NOT_YET and self._traced(row, key) is not None:
                name = seen.get(_ID)
                seen.clear()
                seen[_ID] = name
                form = self._found(row, key, seen)
        except FAULTS:
            return None
        return None if form is NOT_YET else form  # a file may have changed since

    def _found(self, row: Sample, key: Hashable, seen: Seen) -> Any:
        """Return the form that the answers of a row lead to. Where there are many media, they are counted."""
        root = self._tree.roots.get(key, NOT_YET)
        if key not in self._counted:
            return self._tree.find(root, row[0], seen)
        request = self._builder.request_reader()
        seen[_READ] = request.read
        form = self._tree.find(root, row[0], seen)
        if form is not NOT_YET:
            self._builder.keep(request)
        return form

    def _traced(self, row: Sample, key: Hashable) -> Form | None:
        """Trace a row, keep its form, and return it; None if it is walked."""
        tracer = _Tracer(self._builder)
        form = None
        try:
            form = tracer.form(row, self)
        except ROW_FAULTS:
            return None  # other rows with these answers may have none
        except FAULTS:
            pass  # a stand-in cannot be used so, whatever the row
        if tracer.files > self._builder.few:
            self._counted.add(key)
        self._tree.keep(row, key, tracer.trace.asked, form, tracer.asker)
        return form

    def kept(self, part: MediaPart, prefix: str, before: Payload | None = None) -> Payload:
        """Return what stands for a medium that all rows have, with its base64 if there is room for it.

        ``before`` stood there until now.
        """
        payload = Payload(prefix, part)
        if before is not None and before.base64:
            self._room += len(before.part.data) * 7 // 3
        size = len(part.data) * 7 // 3
        if size > self._room:
            return payload
        self._room -= size
        return payload.encoded()

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_tree": FormTree(), "_counted": set(), "_room": _MOST_KEPT}


class _Tracer:
    """Makes the requests of a row with stand-ins for its values.

    ``media`` counts those of all requests, and ``files`` those among them that are read.
    """

    def __init__(self, builder: RequestBuilder) -> None:
        self._builder = builder
        self.trace = Trace()
        self.media = self.files = 0
        self._refs: list[MediaRef] = []

    def form(self, row: Sample, forms: Forms) -> Form | None:
        """Return the form of a row; None if a value decides in a way that no question covers."""
        builder = self._builder
        writer = builder.writer.with_reader(self._read)
        wires = list(builder.traced(row._replace(columns=stand_ins(row.columns, self.trace)), writer))
        most = builder.media.reader.policy.max_request_media
        if not self.trace.is_plain or not wires or self.media > most or (len(wires) > 1 and self.files > builder.few):
            return None
        of_all = [not stands_in(ref.source) for ref in self._refs]
        largest = builder.writer.request_bytes
        requests = tuple([RequestForm(wire, forms, largest, of_all) for wire in wires])
        answer = builder.task.output_column if builder.task.output_column in row.columns else None
        named = next((name for name in ID_COLUMNS if row.columns.get(name) is row.id), None)
        has_line = len(requests) == 1 and (answer is None or type(row.columns[answer]) in _EXACT)
        return Form(requests, requests[0].line(named, answer) if has_line else None, named, largest)

    def _read(self, ref: MediaRef) -> MediaPart | MediaRef:
        """Return a medium as the writer gets it: what it may decide by, and stand-ins for everything else."""
        builder, source = self._builder, ref.source
        if holds_stand_in(ref[2:5]) or (not stands_in(source) and holds_stand_in(source)):  # no row fills these
            raise TypeError
        self.media += 1
        if stands_in(source):
            if type(source.real) is str and builder.takes_addresses and source.asked(builder.scheme_sent):
                return ref._replace(name=source)  # type: ignore[arg-type]  # it stands for an address
            ref = ref._replace(source=source.real)
        elif type(source) is str and builder.takes_addresses and builder.scheme_sent(source):
            return ref._replace(name=source)
        if not self.trace.is_plain or hasattr(ref.source, "read"):  # a stream is read once
            raise TypeError
        self.files += 1
        part = builder.media.reading(ref)
        place: Place = (MEDIA, len(self._refs))
        self._refs.append(ref._replace(source=source))
        self.trace.asked.append(Asked(place, type, _facts(part)))
        if isinstance(part, MediaRef):
            written: Any = Value(part.source, (*place, "source"), self.trace)
            name: Any = written if part.name is part.source else Value(part.name, (*place, "name"), self.trace)
            return part._replace(source=written, name=None if part.name is None else name)
        if part.frames:
            self.trace.is_plain = False
            return part
        facts: dict[str, Any] = {
            name: Value(getattr(part, name), (*place, name), self.trace) for name in ("origin", "changes", "findings")
        }
        return part._replace(**facts, data=Hole(part.data, (*place, "data"), self.trace))  # type: ignore[arg-type]  # it stands for bytes

    def asker(self, asked: Asked) -> Getter | None:
        """Return what reads a medium of a row; the answer is what a writer may decide by. None for other questions."""
        if asked.place[0] != MEDIA or len(asked.place) > 2:
            return None
        ref: MediaRef = self._refs[int(asked.place[1] or 0)]
        modality, source, form, options, extra, _ = ref
        get = getter(source.place) if stands_in(source) else None
        known = limits(self._builder.target)
        taken = known.modalities.get(modality)
        looks = taken is not None and taken.looks_at_bytes
        reading = self._builder.media.reading

        def read(columns: Mapping[str, object], seen: Seen) -> Hashable:
            named = ref if get is None else _new(MediaRef, (modality, get(columns, seen), form, options, extra, None))
            read_one: Any = seen.get(_READ, reading)
            part = read_one(named)
            media: Any = seen.setdefault(MEDIA, [])
            media.append(part)
            if looks and type(part) is MediaPart:
                check_media(part, known)
            return _facts(part)

        return read


def _facts(part: MediaPart | MediaRef) -> Hashable:
    """Return what a writer may decide by: the media type of a medium that was read, else whether it has a name.

    Of one with a name, also whether it is the source as it was written: a path has another one in media mode file.
    """
    if isinstance(part, MediaRef):
        return part.name is not None, part.name is part.source
    return part.media_type if not part.frames else (part.media_type, len(part.frames))


class RequestForm:
    """One request of a form."""

    def __init__(self, traced: WireRequest, forms: Forms, most: int | None, of_all: Sequence[bool]) -> None:
        wire, self.turn, self.label, self.dropped = traced
        self._is_keyed = isinstance(wire, dict)
        self._most = most
        self._values = {key: _Gaps.in_json(value, forms, of_all) for key, value in keyed(wire).items()}

    def line(self, named: str | None, answer: str | None) -> _Gaps | None:
        """Return the line of the request; None if it has more keys than its id, its messages and its answer.

        ``named`` is the column of the id, None if no column holds it; ``answer`` that of the answer, if there is one.
        """
        if self.dropped or self.turn is not None or self.label is not None:
            return None
        pieces: list[bytes | _Gaps] = [b'{"id":', _Gaps.of_id() if named is None else _Gaps.of_column(named)]
        for key, value in self._values.items():
            pieces += [b',"%b":' % key.encode(), value]
        if answer is not None:
            pieces += [b',"answer":', _Gaps.of_column(answer)]
        return _Gaps.joined(*pieces, b"}\n")

    def wire(self, columns: Mapping[str, object], seen: Seen) -> WireRequest:
        """Return the request of a row; fails with one of ``FAULTS`` if the row has to be walked."""
        filled = {key: EncodedJSON(*value.filled(columns, seen)) for key, value in self._values.items()}
        if self._most is not None:
            every = filled.values()
            check_size(b"".join([v.text for v in every]), [p for v in every for p in v.payloads], self._most)
        made: Any = filled if self._is_keyed else filled["messages"]
        return _new(WireRequest, (made, self.turn, self.label, self.dropped))


def check_size(text: bytes, payloads: Sequence[Payload], most: int) -> None:
    """Leave a request to the walk that may have more bytes than the target takes.

    Raises:
        ValueError: it may.
    """
    if len(text) + sum([payload.size for payload in payloads]) > most:
        raise ValueError


class _Medium:
    """A gap for the base64 of a medium: the text before it, and the number of the medium. ``forms`` keep its base64."""

    __slots__ = ("_forms", "_kept", "_number", "_prefix")

    def __init__(self, prefix: str, number: int, forms: Forms | None) -> None:
        self._prefix = prefix
        self._number = number
        self._forms = forms
        self._kept: Payload | None = None

    def payload(self, parts: Sequence[MediaPart]) -> Payload:
        """Return what stands for the medium of a row."""
        part = parts[self._number]
        if self._forms is None:
            return Payload(self._prefix, part)
        kept = self._kept
        if kept is None or (kept.part is not part and kept.part != part):
            kept = self._kept = self._forms.kept(part, self._prefix, kept)
        return kept


class _Gaps:
    """JSON with gaps for the values of a row: a format of ``%``, what fills its gaps, and the media in it.

    ``columns`` are those that fill the gaps, if each of them is filled by the value of a column as it is.
    """

    __slots__ = ("_values", "columns", "encoders", "form", "media")

    def __init__(
        self, form: bytes, encoders: Sequence[Getter], media: Sequence[_Medium], columns: Sequence[str] | None
    ) -> None:
        self.form = form
        self.encoders = tuple(encoders)
        self.media = tuple(media)
        self.columns = columns
        self._values = None if columns is None or len(columns) < 2 else itemgetter(*columns)

    @classmethod
    def in_json(cls, value: object, forms: Forms, of_all: Sequence[bool]) -> _Gaps:
        """Return a traced value as JSON with gaps; ``of_all`` says which media all rows have."""
        pieces, leaves = json_leaves(value)
        encoders: list[Getter] = []
        media: list[_Medium] = []
        columns: list[str] | None = []
        form = _doubled(pieces[0])
        for leaf, piece in zip(leaves, pieces[1:], strict=True):
            if type(leaf) is Payload:
                number = leaf.part.data.place[1]  # type: ignore[attr-defined]  # a Hole
                media.append(_Medium(leaf.prefix, number, forms if of_all[number] else None))
            else:
                encoders.append(_encoder(leaf))
                is_whole = stands_in(leaf) and len(leaf.place) == 1 and type(leaf.real) is str
                columns = [*columns, leaf.place[0]] if is_whole and columns is not None else None  # type: ignore[attr-defined]
            form += (b"\0" if type(leaf) is Payload else b"%b") + _doubled(piece)
        return cls(form, encoders, media, columns)

    @classmethod
    def of_column(cls, name: str) -> _Gaps:
        """Return a gap for a column, whatever it holds."""
        return cls(b"%b", [lambda columns, _: orjson.dumps(columns[name])], (), [name])

    @classmethod
    def of_id(cls) -> _Gaps:
        """Return a gap for the id of a row."""
        return cls(b"%b", [lambda _, seen: orjson.dumps(seen[_ID])], (), None)

    @classmethod
    def joined(cls, *pieces: bytes | _Gaps) -> _Gaps:
        """Return formats, and JSON with gaps, as one."""
        gaps = [piece for piece in pieces if isinstance(piece, _Gaps)]
        form = b"".join([piece.form if isinstance(piece, _Gaps) else piece for piece in pieces])
        columns = None if any(one.columns is None for one in gaps) else [c for one in gaps for c in one.columns or ()]
        encoders = [encode for one in gaps for encode in one.encoders]
        return cls(form, encoders, [medium for one in gaps for medium in one.media], columns)

    def filled(self, columns: Mapping[str, object], seen: Seen) -> tuple[bytes, list[Payload]]:
        """Return the JSON of a row with a hole for each medium, and the media."""
        if self._values is not None:
            text = self.form % tuple(map(orjson.dumps, self._values(columns)))
        else:
            text = self.form % tuple([encode(columns, seen) for encode in self.encoders])
        return text, self.payloads(seen)

    def payloads(self, seen: Seen) -> list[Payload]:
        """Return the media of a row."""
        media: Any = seen.get(MEDIA)
        return [medium.payload(media) for medium in self.media] if self.media else []

    def texts(self, every: Sequence[Mapping[str, object]], seen: Sequence[Seen]) -> list[bytes]:
        """Return the JSON of several rows with a hole for each medium."""
        if self.columns is None or not self.columns:
            return [
                self.form % tuple([encode(columns, own) for encode in self.encoders])
                for columns, own in zip(every, seen, strict=True)
            ]
        values = [map(orjson.dumps, map(itemgetter(name), every)) for name in self.columns]
        return list(map(self.form.__mod__, zip(*values, strict=True)))


def _doubled(text: bytes) -> bytes:
    """Return text that a format of ``%`` gives as it is."""
    return text.replace(b"%", b"%%")


def _encoder(leaf: object) -> Getter:
    """Return what gives the JSON of what stands in a gap."""
    if stands_in(leaf) and len(leaf.place) == 2 and leaf.place[0] != MEDIA:  # one call less than below
        name, step = cast("tuple[str, Any]", leaf.place)
        return lambda columns, _: orjson.dumps(columns[name][step])  # type: ignore[index]  # a list
    get = text_getter(leaf)
    return lambda columns, seen: orjson.dumps(get(columns, seen))
