"""Notes on a task's rows: columns that the task names but rows lack, and columns that are never sent to the model.

``RowNotes`` observes the rows as ``Task.samples`` gives them. It looks at every row and counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any

from mmprompt.datasets.choices import FROM_1
from mmprompt.datasets.media_columns import media_column, modality_of
from mmprompt.datasets.sample import Row, Sample
from mmprompt.errors import RowError, names_in_short, nearest, shown
from mmprompt.errors.findings import Note
from mmprompt.segments import has_other_brackets
from mmprompt.targets.exact_json import finite
from mmprompt.tasks.config import TaskConfig
from mmprompt.tasks.odd_values import RowNote, number_note
from mmprompt.tasks.row_shapes import Noted, Shape, likeness
from mmprompt.tasks.unsent import (
    ANSWERS,
    USE_TEMPLATE,
    SentColumns,
    empty_notes,
    has_more,
    is_settled,
    tag_note,
    unsent_notes,
)
from mmprompt.templates.sample_view import CONTENT

if TYPE_CHECKING:
    from mmprompt.icl.assembly import Assembly

_PLAIN = frozenset({str, int, float, bool, type(None)})
"""Types of values that are no media, unless the name of their column says so."""

_MOST_SHAPES = 1000
_MOST_NOTES = 100
_MOST_COLUMNS = 20
"""How many unsent columns of one row are noted."""


class RowNotes:
    """Collects notes on the rows of a task during an iteration; the last iteration counts.

    Args:
        config: the columns that the task names.
        assembly: the task's templates; None for a task without a template.
        mapped: the columns that ``--map`` names, column to modality.
        list_cells: a cell may be a list written as text.
    """

    def __init__(
        self, config: TaskConfig, assembly: Assembly | None, mapped: Mapping[str, str], *, list_cells: bool
    ) -> None:
        expected = config.masked is not None and not config.names_output
        sent = SentColumns(mapped, config.output_column, list_cells, config.meta_template is None, expected)
        self._counts = partial(RowCounts, config, assembly, sent)
        self._last = self._counts()

    def observed(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows, and count them. Each iteration has its own counts. An id of NaN or infinity is an error."""
        counts = self._last = self._counts()
        see = counts.see
        for row in rows:
            if type(row) is Sample:
                see(row)
                name = row.id
                if type(name) is float and not isfinite(name):
                    what = f"the id is {finite(name)}"
                    yield row.located(RowError(what, "give a text or a finite number", code="MM007"))
                    continue
            yield row

    @property
    def state(self) -> dict[str, Any]:
        """The counts as plain data, for ``add_state``."""
        return self._last.state

    def add_state(self, state: dict[str, Any]) -> None:
        """Add the counts of the rows after those that are counted."""
        self._last.add_state(state)

    def texts(self) -> list[Note]:
        """Return the notes, with their numbers of rows."""
        return self._last.texts()


class RowCounts:
    """Counts, over the rows of one iteration, what is worth a note; see ``RowNotes``."""

    def __init__(self, config: TaskConfig, assembly: Assembly | None, sent: SentColumns) -> None:
        self._config = config
        self._assembly = assembly
        self._media_slots = None if assembly is None else assembly.template.media_slots
        self._sent = sent
        self._tagged = () if assembly is None else config.tagged_columns
        self._others = 0
        self._shapes: dict[tuple[str, ...], Shape] = {}
        self._found: dict[str, list[Any]] = {}
        self._left: Counter[str] = Counter()

    def see(self, sample: Sample) -> None:
        """Count a row."""
        columns = sample.columns
        seen = self._shapes.get(tuple(columns)) or self._first_of_shape(sample)
        seen.count += 1
        noted = self._settled(sample, seen) if seen.valued else None
        if noted is not None:
            self._take(noted, seen)
        elif seen.valued or (seen.unplaced and not _PLAIN.issuperset(map(type, columns.values()))):
            self._take(self._noted(sample, seen), seen)
        if sample.scanned:
            for name in seen.texts:
                if type(text := columns[name]) is str and has_other_brackets(text):
                    by_rule = self._tagged is not None or name == CONTENT
                    if note := tag_note(name, text, by_rule=by_rule):
                        _count(self._found, note, 1)

    def _first_of_shape(self, sample: Sample) -> Shape:
        """Return the shape of a row whose columns no row before had."""
        columns, tagged = tuple(sample.columns), self._tagged
        media = {} if sample.messages else self._sent.media(columns, self._media_slots)
        texts = [name for name in columns if name == CONTENT or tagged is None or name in tagged]
        shape = Shape(media, self._unplaced(sample), texts, self._assembly is None and has_more(sample, self._sent))
        shape.valued |= not FROM_1.isdisjoint(columns)
        if len(self._shapes) < _MOST_SHAPES:
            self._shapes[columns] = shape
        else:
            self._others += 1
            shape.valued = True  # the next row of this shape is not counted here, but with the others
        return shape

    def _settled(self, sample: Sample, seen: Shape) -> Noted | None:
        """Return what is noted on an ordinary row, if that is the same for all that are alike."""
        like = likeness(sample)
        noted = seen.settled.get(like)
        if noted is None and like is not None and like not in seen.settled:
            settles = FROM_1.isdisjoint(sample.columns) and (not seen.looks or is_settled(sample, self._sent))
            noted = seen.settled[like] = self._noted(sample, seen) if settles else None
        return noted

    def _take(self, noted: Noted, seen: Shape) -> None:
        """Count what is noted on a row."""
        for note in noted.notes:
            _count(self._found, note, 1)
        for name in noted.left:
            if name in self._left or len(self._left) < _MOST_SHAPES:
                self._left[name] += 1
        for name in noted.lacking:
            seen.empty[name] += 1

    def _noted(self, sample: Sample, seen: Shape) -> Noted:
        """Return what the values of a row are worth a note for."""
        noted = Noted([], [], self._sent.lacking(sample.columns, seen.media) if seen.media else [])
        for name, is_named in seen.unplaced:
            value = sample.columns[name]
            if not is_named and (type(value) in _PLAIN or not modality_of(value)):
                continue
            placed = name in sample.sent and self._media_slots  # in ``content``
            if not placed and value not in (None, "", []):
                hint = f"write {{{name}}} in a media part of the template"
                what = f"{shown(name)} holds media, and the template has no place for it"
                noted.notes.append(("MM605", what, hint))
        if self._config.index_base is None and (note := number_note(sample.columns, self._config.output_column)):
            noted.notes.append(note)
        if seen.looks:
            notes, left = unsent_notes(sample, self._sent)
            noted.notes.extend(notes)
            noted.left.extend(left[:_MOST_COLUMNS])
        return noted

    @property
    def state(self) -> dict[str, Any]:
        """The counts as plain data, for ``add_state``."""
        shapes = [[list(shape), s.count, s.empty, s.media] for shape, s in self._shapes.items()]
        found = [[fact, *counted] for fact, counted in self._found.items()]
        return {"shapes": shapes, "others": self._others, "found": found, "left": dict(self._left)}

    def add_state(self, state: dict[str, Any]) -> None:
        """Add the counts of the rows after those that are counted."""
        for columns, count, empty, media in state["shapes"]:
            shape = self._shapes.get(tuple(columns))
            if shape is None:
                shape = Shape(media, [], [], looks=False)
                if len(self._shapes) < _MOST_SHAPES:
                    self._shapes[tuple(columns)] = shape
                else:
                    self._others += count
            shape.count += count
            shape.empty.update(empty)
        for fact, rows, hint, code in state["found"]:
            _count(self._found, (code, fact, hint), rows)
        self._others += state["others"]
        self._left.update(state["left"])

    def texts(self) -> list[Note]:
        """Return the notes, each with the number of rows it is about."""
        found: dict[str, list[Any]] = {}
        shapes = list(self._shapes.items())
        for shape, seen in shapes:
            for note in (*column_notes(self._config, shape), *self._slot_notes(shape)):
                _count(found, note, seen.count)
        of_media = [(shape, s.count, s.media, s.empty) for shape, s in shapes]
        for count, what, hint in empty_notes(of_media, self._media_slots):
            _count(found, ("MM611", what, hint), count)
        rows = self._others + sum([seen.count for _, seen in shapes])
        by_count: dict[int, list[str]] = {}
        for name, count in list(self._left.items()):
            by_count.setdefault(count, []).append(name)
        for count, names in by_count.items():
            left = names_in_short(map(repr, names))
            what = f"{left} {'is' if len(names) == 1 else 'are'} not sent"
            _count(found, ("MM616", what, USE_TEMPLATE), count)
        every = [*list(self._found.items()), *found.items()]
        return [Note(code, f"{_in_rows(count, rows)}: {what}", hint) for what, (count, hint, code) in every]

    def _unplaced(self, sample: Sample) -> list[tuple[str, bool]]:
        """Return the columns of a row that the template does not name, and whether each name is that of media."""
        if self._assembly is None:
            return []
        named = {*self._assembly.template.slot_names, self._config.output_column}
        return [(name, bool(media_column(name))) for name in sample.columns if name not in named]

    def _slot_notes(self, columns: Sequence[str]) -> Iterator[RowNote]:
        for name, end in ({} if self._assembly is None else self._assembly.unknown_slots(columns)).items():
            yield "MM609", f"{{{name}}} in a template names no column, so it {end}", nearest(name, columns)


def _count(found: dict[str, list[Any]], note: RowNote, rows: int) -> None:
    """Add rows to a note. Notes with the same text are merged and keep the hint of the first."""
    code, fact, hint = note
    if fact in found:
        found[fact][0] += rows
    elif len(found) < _MOST_NOTES:
        found[fact] = [rows, hint, code]


def _in_rows(count: int, rows: int) -> str:
    if count == rows:
        return f"all {count} rows" if count > 1 else "the row"
    return f"{count} of {rows} rows"


def column_notes(config: TaskConfig, columns: Sequence[str]) -> Iterator[RowNote]:
    """Yield a note for each column that ``reader_cfg`` names and a row lacks.

    The default output column counts as named where the row has a column of nearly that name.
    """
    named = config.names_output or not ANSWERS.isdisjoint(columns)
    if named and config.masked is not None and config.masked not in columns:
        what = "so rows go out without an answer, and prompts hide no column"
        near = nearest(config.masked, columns)
        yield "MM612", f"no column {shown(config.masked)}, which output_column names, {what}", near
    for name in config.tagged_columns or ():
        if name not in columns:
            yield "MM612", f"no column {shown(name)}, which tagged_columns names", nearest(name, columns)


def prompt_notes(config: TaskConfig, assembly: Assembly | None, trained: bool, *, replied: bool) -> list[Note]:
    """Return notes on examples that no retriever takes, and on turns that are not rendered.

    ``trained`` is True if the task names a dataset of examples, and ``replied`` if a model replied to each turn.
    """
    taken = assembly is not None and assembly.needs_examples
    unused = [] if taken else _unused_examples(config, trained)
    if assembly is not None and assembly.needs_replies and not replied:
        what = "infer_mode 'every' needs a model's replies: only turn 0 of each dialogue is rendered"
        return [*unused, Note("MM606", what)]
    return unused


def _unused_examples(config: TaskConfig, trained: bool) -> list[Note]:
    """Return a note if the task has examples or a template for them; no retriever takes any."""
    infer = config.infer_cfg or {}
    alone = "retriever" not in infer and {"ice_template", "prompt_template"} <= infer.keys()
    unused = "dataset.train" if trained else "ice_template" if alone else ""
    hint = "name one, such as FixKRetriever"
    return [Note("MM610", f"{unused} is not used: no retriever takes examples", hint)] if unused else []
