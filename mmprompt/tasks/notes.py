"""Notes on a task's rows: columns that the task names but rows lack, and columns that are never sent to the model.

``RowNotes`` observes the rows as ``Task.samples`` gives them. It looks at every row and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import isfinite
from typing import Any, NamedTuple

from mmprompt.datasets.list_cells import list_of_cell
from mmprompt.datasets.media_columns import media_column, modality_of
from mmprompt.datasets.row_ids import ID_COLUMNS
from mmprompt.datasets.sample import Row, Sample
from mmprompt.errors import RowError, SourceError, names_in_short, nearest, shown
from mmprompt.media.base64_text import clean_head
from mmprompt.media.media_types import any_type, sniff, suffix_type
from mmprompt.media.sources import classify
from mmprompt.messages import MODALITIES, TextPart
from mmprompt.segments import START_TAGS
from mmprompt.targets.exact_json import finite
from mmprompt.tasks.config import ANSWER, TaskConfig
from mmprompt.tasks.default_prompt import QUESTION
from mmprompt.templates.sample_view import CONTENT

_CHOICES = ("A", "B", "C", "D", "choices", "options")
"""The columns that datasets of multiple choice use for their choices."""

Note = tuple[str, str]
"""What was found, and what to do about it."""

_TASK = "use a task with a template"
_MOST_SHAPES = 1000
_MOST_NOTES = 100
_MOST_COLUMNS = 20
"""How many columns of one row get a note each."""

_MEDIA_TAGS = tuple([tag for tag, modality in START_TAGS.items() if modality != "text"])


class Unsent(NamedTuple):
    """The columns that a task without a template sends; notes are about the others.

    ``mapped`` are the columns that ``--map`` names, column to modality. ``output_column`` is the answer's. With
    ``list_cells`` a cell may be a list written as text. ``shows_answer`` is False where a meta template follows.
    """

    mapped: Mapping[str, str]
    output_column: str
    list_cells: bool
    shows_answer: bool


class RowNotes:
    """Notes on the rows of a task, from the last iteration over them.

    Args:
        config: the columns that the task names.
        unknown_slots: returns the names in braces that are no column of a row.
        unsent: what a task without a template sends; None for a task with a template.
    """

    def __init__(
        self, config: TaskConfig, unknown_slots: Callable[[Sequence[str]], list[str]] | None, unsent: Unsent | None
    ) -> None:
        self._made = (config, unknown_slots, unsent)
        self._last = RowCounts(*self._made)

    def observed(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows, and count them. Each iteration has its own counts. An id of NaN or infinity is an error."""
        counts = self._last = RowCounts(*self._made)
        for row in rows:
            if type(row) is Sample:
                counts.see(row)
                if isinstance(row.id, float) and not isfinite(row.id):
                    what = f"the id is {finite(row.id)}, which JSON cannot hold"
                    yield row.located(RowError(what, "give the row a text or a finite number as its id"))
                    continue
            yield row

    def texts(self) -> list[str]:
        """Return the notes, with their numbers of rows."""
        return self._last.texts()


class RowCounts:
    """Counts, over the rows of one iteration, what is worth a note; the arguments are those of ``RowNotes``."""

    def __init__(
        self, config: TaskConfig, unknown_slots: Callable[[Sequence[str]], list[str]] | None, unsent: Unsent | None
    ) -> None:
        self._config = config
        self._unknown_slots = unknown_slots
        self._unsent = unsent
        self._others = 0
        self._shapes: dict[tuple[str, ...], list[int]] = {}
        self._found: dict[str, list[Any]] = {}

    def see(self, sample: Sample) -> None:
        """Count a row."""
        shape = tuple(sample.columns)
        seen = self._shapes.get(shape)  # how many rows have these columns, and whether to look at their values
        if seen is None:
            looks = self._unsent is not None and _has_more(sample, self._unsent)
            seen = [0, looks]
            if len(self._shapes) < _MOST_SHAPES:
                self._shapes[shape] = seen
            else:
                self._others += 1
        seen[0] += 1
        if seen[1] and self._unsent is not None:
            for note in unsent_notes(sample, self._unsent):
                _count(self._found, note, 1)

    def texts(self) -> list[str]:
        """Return the notes, each with the number of rows it is about."""
        found: dict[str, list[Any]] = {}
        shapes = list(self._shapes.items())
        for shape, (count, _) in shapes:
            for note in (*column_notes(self._config, shape), *self._slot_notes(shape)):
                _count(found, note, count)
        rows = self._others + sum([count for _, (count, _) in shapes])
        every = [*found.items(), *list(self._found.items())]
        return [f"{_in_rows(count, rows)}: {fact}; {hint}" for fact, (count, hint) in every]

    def _slot_notes(self, columns: Sequence[str]) -> Iterator[Note]:
        for name in dict.fromkeys(self._unknown_slots(columns) if self._unknown_slots is not None else ()):
            yield f"{{{name}}} in a template names no column, so it stays as it is", nearest(name, columns)


def _count(found: dict[str, list[Any]], note: Note, rows: int) -> None:
    """Add rows to a note. Notes of the same fact are one, with the hint of the first."""
    fact, hint = note
    if fact in found:
        found[fact][0] += rows
    elif len(found) < _MOST_NOTES:
        found[fact] = [rows, hint]


def _in_rows(count: int, rows: int) -> str:
    if count == rows:
        return f"all {count} rows" if count > 1 else "the row"
    return f"{count} of {rows} rows"


def column_notes(config: TaskConfig, columns: Sequence[str]) -> Iterator[Note]:
    """Yield a note for each column that ``reader_cfg`` names and a row lacks.

    The default output column counts as named where the row has a column of nearly that name.
    """
    named = config.names_output or any(name.lower() in (ANSWER, f"{ANSWER}s") for name in columns)
    if named and config.masked is not None and config.masked not in columns:
        what = "so no answer goes out, and none is hidden from prompts"
        yield f"no column {shown(config.masked)}, which output_column names, {what}", nearest(config.masked, columns)
    for name in config.tagged_columns or ():
        if name not in columns:
            yield f"no column {shown(name)}, which tagged_columns names", nearest(name, columns)


def example_notes(config: TaskConfig, trained: bool) -> list[str]:
    """Return a note if the task has examples or a template for them, but no retriever that takes any.

    ``trained`` is True if the task names a dataset of examples.
    """
    infer = config.infer_cfg or {}
    alone = "retriever" not in infer and {"ice_template", "prompt_template"} <= infer.keys()
    unused = "dataset.train" if trained else "ice_template" if alone else ""
    hint = "name one, such as FixKRetriever"
    return [f"{unused} is not used: no retriever takes examples; {hint}"] if unused else []


def unsent_notes(sample: Sample, unsent: Unsent) -> list[Note]:
    """Return a note for each kind of content in a row that a task without a template does not send."""
    columns = sample.columns
    if sample.messages is not None:
        fed = "messages"
        media, text = any(type(part) is not TextPart for m in sample.messages for part in m.parts), True
    elif CONTENT in columns:
        fed = CONTENT
        media, text = _kinds_in(columns[CONTENT], sample.scanned)
    else:
        fed = ""
        media = any(_sends_media(name, value, unsent) for name, value in columns.items())
        text = columns.get(QUESTION) not in (None, "")
    used = {fed} if fed else {QUESTION, *unsent.mapped}
    beside = {n: v for n, v in columns.items() if n not in {*ID_COLUMNS, *used, unsent.output_column}}
    mapped = list(_unsent_mapped(unsent.mapped, columns, fed))
    notes = list(mapped)
    if not (text or media):  # the row's error says that there is nothing to send
        return notes
    question = columns.get(QUESTION)
    if not fed and isinstance(question, (list, Mapping)):
        notes.append((f"'question' is {type(question).__name__}, sent as Python writes it", _TASK))
    if not fed and QUESTION in columns and (choices := [name for name in _CHOICES if name in columns]):
        notes.append((f"the choices ({', '.join(choices)}) are not sent", _TASK))
    if not text:
        notes += _unsent_texts(beside, fed)
    if not media and not mapped:
        notes += islice(_unsent_media(beside, fed, unsent.list_cells), _MOST_COLUMNS)
    last = sample.messages[-1] if sample.messages and unsent.shows_answer else None
    if last is not None and last.role == "assistant" and last.parts:  # it may be the answer that is asked for
        hint = f"if it is the answer, give it as {shown(unsent.output_column)} and not in 'messages'"
        notes.append(("the last message is the assistant's, and the model is shown it", hint))
    return notes


def _has_more(sample: Sample, unsent: Unsent) -> bool:
    """Return whether rows with these columns may hold more than an id, an answer and what is sent."""
    sent = {CONTENT} if CONTENT in sample.columns else set()
    return (
        sample.messages is not None
        or not sample.columns.keys() <= {*ID_COLUMNS, *sent, unsent.output_column}
        or bool(unsent.mapped)
    )


def _kinds_in(content: object, scanned: bool) -> tuple[bool, bool]:
    """Return whether a content holds media, and whether it holds text."""
    if not isinstance(content, str):
        media = modality_of(content) is not None or any(
            modality_of(item)
            or getattr(item, "modality", "text") != "text"
            or (isinstance(item, Mapping) and item.get("type", "text") not in ("text", "input_text"))
            for item in (content if isinstance(content, (list, tuple)) else ())
        )
        return media, not media or _holds_text(content)
    if not scanned:
        return False, True
    media = any(tag in content for tag in _MEDIA_TAGS)
    return media, not media or "<AIS_TEXT_START>" in content or not content.startswith(_MEDIA_TAGS)


def _holds_text(content: object) -> bool:
    items = content if isinstance(content, (list, tuple)) else ()
    return any(isinstance(item, (str, TextPart)) or getattr(item, "modality", "") == "text" for item in items) or any(
        isinstance(item, Mapping) and "text" in item for item in items
    )


def _sends_media(name: str, value: object, unsent: Unsent) -> bool:
    """Return whether the default message sends media of a column."""
    if value is None or name in (QUESTION, unsent.output_column):
        return False
    return (
        name in unsent.mapped or media_column(name) is not None or bool(type(value) is not str and modality_of(value))
    )


def _unsent_mapped(mapped: Mapping[str, str], columns: Collection[str], fed: str) -> Iterator[Note]:
    """Yield a note on the columns that ``--map`` names but of which nothing is sent."""
    unsent = [name for name in mapped if fed or name not in columns or name == QUESTION]
    if unsent:
        near = nearest(unsent[0], [name for name in columns if name != QUESTION])
        hint = f"its '{fed}' is all it sends" if fed else near
        yield f"no media of {', '.join(map(repr, unsent))} is sent, which --map names", hint


def _unsent_texts(columns: Mapping[str, object], fed: str) -> Iterator[Note]:
    """Yield a note for the columns with text in a row of which only media are sent."""
    names = [name for name, value in columns.items() if _has_text(value) and not media_column(name)]
    if names:
        hint = f"tag the text in '{fed}'" if fed else "call the text 'question'"
        left = names_in_short(map(repr, names))
        yield f"only media are sent, and not the text of {left}", f"{hint}, or {_TASK}"


def _has_text(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_text, value))
    return isinstance(value, str) or (isinstance(value, Mapping) and modality_of(value) is None)


def _unsent_media(columns: Mapping[str, object], fed: str, cells: bool) -> Iterator[Note]:
    """Yield a note for each column that looks like media in a row of which only text is sent."""
    for name, value in columns.items():
        modality = next(filter(None, (_modality(element) for element in list_of_cell(value, cells=cells))), None)
        if modality is None:
            continue
        hint = f"put it into '{fed}'" if fed else f"add --map {names_in_short([name])}={modality}"
        yield f"only text is sent, and {shown(name)} looks like {modality}", f"{hint}, or {_TASK}"


def _modality(value: object) -> str | None:
    """Return the modality of a value that is a medium or clearly names one, else None."""
    if not isinstance(value, str):
        return modality_of(value)
    try:
        kind = classify(value).kind
    except SourceError:
        return None
    if kind == "base64":
        found = sniff(clean_head(value) or b"")
        named = any_type(found) if found else None
    elif kind == "data":
        named = value.lower().removeprefix("data:")
    else:
        named = suffix_type(value.partition("?")[0] if kind == "url" else value)
    modality = (named or "").partition("/")[0]
    return modality if modality in MODALITIES and "\n" not in value else None
