"""The plans of a task's rows: made from the first rows of a shape, proven on the next ones, then used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from mmprompt.datasets.line_columns import LineColumns
from mmprompt.datasets.sample import Row, Sample
from mmprompt.errors import MMPromptError
from mmprompt.errors.findings import Note
from mmprompt.media.base64_text import encode
from mmprompt.messages import MediaRef
from mmprompt.render.media import notes_of
from mmprompt.render.plan import Form, Plan
from mmprompt.render.wire_request import RowLines, WireRequest
from mmprompt.targets.wire_json import EncodedJSON, Payload, filled_chunks, json_body, keyed
from mmprompt.tasks.shapes import Shape, Unplannable, address_of, has_shapes, shape_of

if TYPE_CHECKING:
    from mmprompt.render.builder import RequestBuilder, RowRequests

_new = tuple.__new__  # half the time of the class, and this runs for every row
_NO_NOTES: Sequence[Note] = ()
_AHEAD = 16
"""The most rows that are taken before the file of the first is read."""

_MOST_PLANS = 8
_MOST_TRIES = 16
_MOST_SHAPES = 1000
_ROWS_BEFORE = 2
"""How many rows with the same columns go the long way before a plan is made."""

_MOST_KEPT = 64 << 20
"""The most bytes of media, encoded ones included, that the plans keep for the rows after."""

_PROOFS = 2
"""How many rows go both ways before a plan is used."""


class _Shapes:
    """The plans for rows with the same columns; those that are ``proven`` are used."""

    __slots__ = ("plans", "proven", "rows", "tries")

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.proven: list[Plan] = []
        self.rows = self.tries = 0

    def prove(self, plan: Plan, *, is_right: bool) -> int:
        """Count that a plan gave the same as the long way. One that did not ends all plans for these columns.

        Return how many bytes of media the ended plans kept.
        """
        plan.proofs += 1
        if not is_right:
            kept = sum([ended.kept_bytes for ended in self.plans])
            self.plans, self.proven, self.tries = [], [], _MOST_TRIES
            return kept
        if plan.proofs == _PROOFS and plan in self.plans:
            self.proven = [*self.proven, plan]
        return 0


class Plans:
    """The plans of one ``RequestBuilder``. Safe to share between threads.

    ``line_forms`` and ``wire_forms`` are those of the plans in use, for rows as they stand in lines of JSON.
    """

    def __init__(self, builder: RequestBuilder, *, usable: bool = True) -> None:
        self._builder = builder
        self._shapes: dict[tuple[str, ...], _Shapes] = {}
        self._lock = Lock()
        self._room = _MOST_KEPT
        self._able = usable and has_shapes(builder.task.assembly)
        self.line_forms: list[Form] = []
        self.wire_forms: list[Form] = []

    def __getstate__(self) -> dict[str, object]:
        """Return what another process needs; it makes its own plans."""
        return {"_builder": self._builder, "_able": self._able}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _shapes={}, _lock=Lock(), _room=_MOST_KEPT, line_forms=[], wire_forms=[])

    def has_room(self, more: int) -> bool:
        """Return whether the plans may keep so many bytes more, and count them if so."""
        with self._lock:
            if fits := more <= self._room:
                self._room -= more
            return fits

    def find(self, row: Sample) -> WireRequest | None:
        """Return the request of a row by the plan of its shape; None if the row goes the long way."""
        columns = row.columns
        if type(columns) is LineColumns:
            payloads: list[Payload] = []
            form = columns.form
            if (made := columns.made or form.filled(columns.match.groups(), payloads)) is None:
                return None
            return _new(WireRequest, (EncodedJSON(made, payloads), form.plan.turn, None, form.plan.dropped))
        shapes = self._shapes.get(tuple(columns))
        if shapes is None:
            return None
        for plan in shapes.proven:
            wire = plan.wire(columns)
            if wire is not False:
                return None if wire is None else _new(WireRequest, (wire, plan.turn, None, plan.dropped))
        return None

    def prepare_lines(self, rows: Iterator[Row]) -> Iterator[RowLines | RowRequests]:
        """Yield ``prepare_line`` of each row.

        Of rows whose file is still to be read up to ``_AHEAD`` are taken before the first file is read. Taking a row
        thus costs less: each file drives code and data out of the processor's cache. An error of the dataset comes
        after the rows before it.
        """
        waiting: list[Sample] = []
        try:
            for row in rows:
                waits = False
                if type(row) is Sample and type(columns := row.columns) is LineColumns:
                    if waits := columns.around is not None:
                        waiting.append(row)
                        if len(waiting) < _AHEAD:
                            continue
                    elif columns.made and not waiting:
                        yield row, [columns.made], _NO_NOTES
                        continue
                if waiting:
                    taken, waiting = waiting, []
                    yield from self._with_files(taken)
                if not waits:
                    yield self.prepare_line(row)
        except Exception:  # the dataset cannot be read on
            yield from self._with_files(waiting)
            raise
        yield from self._with_files(waiting)

    def _with_files(self, rows: Sequence[Sample]) -> Iterator[RowLines | RowRequests]:
        """Yield the line of each row whose file is still to be read; the long way gives its requests, or its error."""
        file_bytes, most = self._builder.file_bytes, self._builder.request_bytes
        for row in rows:
            columns: Any = row.columns
            path, is_kind, before, after = columns.around
            try:
                data = file_bytes(path)
                if is_kind(data) and len(data) <= most:
                    yield row, [before, encode(data), after], _NO_NOTES
                    continue
                columns.form.forget_file(path)
            except (MMPromptError, MemoryError):
                yield self._builder.prepare(row._replace(columns=columns.as_read()))
                continue
            yield self.prepare_line(row)

    def prepare_line(self, row: Row) -> RowLines | RowRequests:
        """Return the line of a row where a plan gives it, as ``--emit messages`` writes it; else its requests."""
        if type(row) is not Sample:
            return self._builder.prepare(row)
        columns = row.columns
        if type(columns) is LineColumns:
            if columns.made:
                return row, [columns.made], _NO_NOTES
            media: list[Payload] = []
            if (made := columns.form.filled(columns.match.groups(), media)) is not None:
                return _rendered(row, made, media)
            return self._builder.prepare(row._replace(columns=columns.as_read()))
        if row.messages is None and row.folder is None:
            shapes = self._shapes.get(tuple(columns))
            if shapes is not None and columns.get("id") is row.id:  # --map may take the id from another column
                for plan in shapes.proven:
                    payloads: list[Payload] = []
                    line = plan.at_once(plan.lines, columns, payloads)
                    if line is not None:
                        return _rendered(row, line, payloads)
        return self._builder.prepare(row)

    def learn(self, row: Sample, made: WireRequest) -> None:
        """Make a plan, or prove one, from a row that went the long way."""
        if not self._able:
            return
        columns = tuple(row.columns)
        shapes = self._shapes.get(columns)
        if shapes is None:
            if len(self._shapes) < _MOST_SHAPES:
                self._shapes[columns] = _Shapes()
            return
        shapes.rows += 1
        if shapes.rows < _ROWS_BEFORE or shapes.tries == _MOST_TRIES:
            return
        for plan in shapes.plans:
            wire = plan.wire(row.columns)
            if wire is not False:
                if plan not in shapes.proven and wire is not None:
                    is_right = _same(plan.marked._replace(wire=wire), made)
                    with self._lock:
                        self._room += shapes.prove(plan, is_right=is_right)
                        proven = [used for own in self._shapes.values() for used in own.proven if "id" in used.texts]
                        self.line_forms[:] = [form for used in proven for form in used.lines]
                        self.wire_forms[:] = [form for used in proven for form in used.wires]
                return
        shapes.tries += 1
        if len(shapes.plans) < _MOST_PLANS and (plan_made := self._plan(row)) is not None:
            shapes.plans.append(plan_made)

    def _plan(self, row: Sample) -> Plan | None:
        """Return the plan of a row's shape; None if it has none."""
        task = self._builder.task
        try:
            shape = shape_of(row, task.assembly, task.config)
            plan = Plan(self._builder, shape, *self._walk(row, shape, shape.marks()))
            plan.prefer_form_of(row.columns)
            odd = shape.marks(odd=True, sources=plan.sources)
            filled = plan.marked._replace(wire=plan.filled(odd, named=True))
            return plan if _same(filled, self._walk(row, shape, odd)[0]) else None
        except (Unplannable, MMPromptError, TypeError, ValueError):
            return None

    def _walk(self, row: Sample, shape: Shape, marks: Sequence[str]) -> tuple[WireRequest, list[MediaRef]]:
        """Return a row's request with marks in the place of its values and media that nobody reads, and these media."""
        refs: list[MediaRef] = []

        def named(ref: MediaRef) -> MediaRef:
            address = address_of(len(refs))
            refs.append(ref)
            return ref._replace(source=address, name=address)

        marked = row._replace(columns=shape.marked(marks))
        (request,) = self._builder.walk(marked, self._builder.writer.with_reader(named))
        if len(refs) > self._builder.media.reader.policy.max_request_media:
            raise Unplannable
        return request, refs


def _rendered(row: Sample, line: bytes, payloads: list[Payload]) -> RowLines:
    """Return a row whose line has a hole for each of its media."""
    if not payloads:
        return row, [line], _NO_NOTES
    notes = _NO_NOTES
    for payload in payloads:
        if payload.part.findings:
            notes = [*notes, *notes_of((payload.part,))]
    return row, filled_chunks(line, payloads), notes


def _same(one: WireRequest, other: WireRequest) -> bool:
    """Return whether two requests are the same to the byte."""
    return one[1:] == other[1:] and json_body(dict(keyed(one.wire))) == json_body(dict(keyed(other.wire)))
