"""Which columns a task sends, and notes on content that it does not send, or sends as text by a misspelt tag."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from mmprompt.datasets.choices import LISTS, Choices, choices_in, is_empty, unread_choices
from mmprompt.datasets.media_columns import looks_like, media_column, media_of_cell, modality_of
from mmprompt.datasets.openai_chat import BATCH_KEYS
from mmprompt.datasets.sample import GROUPS, ID_COLUMNS, Sample
from mmprompt.errors import TagError, names_in_short, nearest, shown
from mmprompt.messages import TextPart
from mmprompt.segments import START_TAGS, begins_tagged, near_miss, near_miss_in_text, scan
from mmprompt.tasks.config import ANSWER
from mmprompt.tasks.default_prompt import HINT, QUESTION
from mmprompt.tasks.odd_values import RowNote, odd_texts
from mmprompt.templates.sample_view import CONTENT, CONTENT_SLOTS

ANSWERS = frozenset(name for word in (ANSWER, f"{ANSWER}s") for name in (word, word.title(), word.upper()))
"""Columns that another note is about: they look like the answer's."""

LIKE_ANSWERS = (
    "label", "labels", "target", "gt_answer", "answer_gt", "ground_truth", "gt", "correct_answer", "correct_option",
    "answer_idx", "answer_key", "answerkey", "cls", "output", "response", "reference", "solution",
)  # fmt: skip
"""Other names of the answer's column, in small letters."""

USE_TEMPLATE = "use a task with a template"
_MOST_COLUMNS = 20
"""How many columns of one row get a note each."""

_MEDIA_TAGS = tuple([tag for tag, modality in START_TAGS.items() if modality != "text"])


def unsent_notes(sample: Sample, sent: SentColumns) -> tuple[list[RowNote], list[str]]:
    """Return notes on the content of a row that a task without a template does not send, and its other unsent columns.

    A column that a note names is not among the others.
    """
    columns = sample.columns
    fed, media, text, used, choices = _fed(sample, sent)
    gold = _like_answer(columns, used, sent) if text and fed != "messages" else None
    beside = {name: value for name, value in columns.items() if name not in used and name != gold}
    notes = list(_unsent_mapped(sent.mapped, columns, fed))
    mapped = bool(notes)
    if not (text or media):  # the row's error says that there is nothing to send
        return notes, []
    question = columns.get(QUESTION)
    if not fed and isinstance(question, (list, Mapping, bytes)):
        notes.append(("MM007", f"'question' is {type(question).__name__}, sent as Python writes it", USE_TEMPLATE))
    notes += () if gold is None else [_unnamed_answer(gold)]
    notes += () if fed else odd_texts(columns.get(QUESTION), columns.get(HINT), choices, media)
    noted: list[str] = []
    if not text:
        noted += [name for name, value in beside.items() if _has_text(value) and not media_column(name)]
        notes += _unsent_texts(noted, fed)
    elif not (fed or choices.columns):
        noted += unread_choices(beside)
        notes += _unsent_choices(noted)
    if not media and not mapped:
        looks = {name: found for name, value in beside.items() if (found := looks_like(value, sent.list_cells))}
        noted += looks
        notes += islice(_unsent_media(looks, fed), _MOST_COLUMNS)
    last = sample.messages[-1] if sample.messages and sent.shows_answer else None
    if last is not None and last.role == "assistant" and last.parts:  # it may be the answer that is asked for
        hint = f"if it is the answer, pass --drop-last-assistant, or give it as {shown(sent.output_column)}"
        notes.append(("MM615", "the last message is the assistant's, and it is sent to the model", hint))
    others = [name for name, value in beside.items() if name not in noted and not is_empty(value)]
    return notes, [name for name in others if fed or not _sends_media(name, columns[name], sent)]


class _Fed(NamedTuple):
    """What the message of a row is made of: ``content``, ``messages``, or columns (empty); and the columns it uses."""

    fed: str
    media: bool
    text: bool
    used: Collection[str]
    choices: Choices


def _fed(sample: Sample, sent: SentColumns) -> _Fed:
    columns = sample.columns
    if sample.messages is not None:
        fed = "messages"
        media, text = any(type(part) is not TextPart for m in sample.messages for part in m.parts), True
    elif CONTENT in columns:
        fed = CONTENT
        media, text = kinds_in(columns[CONTENT], sample.scanned)
    else:
        fed = ""
        media = any(_sends_media(name, value, sent) for name, value in columns.items())
        text = columns.get(QUESTION) not in (None, "")
    choices = Choices() if fed else choices_in(columns)
    used = {fed} if fed else {QUESTION, HINT, *sent.mapped, *choices.columns}
    used |= {*ID_COLUMNS, *ANSWERS, *GROUPS, *sample.sent, sent.output_column}
    if fed == "messages" and "body" in columns:
        used |= {*BATCH_KEYS}
    return _Fed(fed, media, text, used, choices)


def is_settled(sample: Sample, sent: SentColumns) -> bool:
    """Return whether the notes on ordinary rows with the columns of this one, which is ordinary, are those on it."""
    columns = sample.columns
    fed, media, _, used, _ = _fed(sample, sent)
    beside = [name for name in columns if name not in used]
    names = {name.lower() for name in beside} if sent.expects_answer and ANSWERS.isdisjoint(columns) else set()
    listed = not fed and any(type(columns.get(name)) is str for name in LISTS)
    return (media or not beside) and names.isdisjoint(LIKE_ANSWERS) and not listed


def _like_answer(columns: Mapping[str, object], used: Collection[str], sent: SentColumns) -> str | None:
    """Return the column that looks like the answer's, if no column of the row is named so; None if none does."""
    if not sent.expects_answer or not ANSWERS.isdisjoint(columns):
        return None
    free = {name.lower(): name for name, value in columns.items() if name not in used and not is_empty(value)}
    named = (free[low] for low in LIKE_ANSWERS if low in free)
    return next((name for name in named if looks_like(columns[name], sent.list_cells) is None), None)


def _unnamed_answer(gold: str) -> RowNote:
    what = f"no column {shown(ANSWER)}, so rows go out without an answer, and {shown(gold)} looks like it"
    return "MM612", what, f"add --map {names_in_short([gold])}={ANSWER}"


def has_more(sample: Sample, sent: SentColumns) -> bool:
    """Return whether rows with these columns may hold more than an id, an answer and what is sent."""
    fed = {CONTENT} if CONTENT in sample.columns else set()
    return (
        sample.messages is not None
        or not sample.columns.keys() <= {*ID_COLUMNS, *fed, sent.output_column}
        or bool(sent.mapped)
    )


def kinds_in(content: object, scanned: bool) -> tuple[bool, bool]:
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
    text = not media or "<AIS_TEXT_START>" in content or not content.startswith(_MEDIA_TAGS)
    return media, text or _has_wrong_tags(content)


def _has_wrong_tags(content: str) -> bool:
    """Return whether the tags of a content are an error of its row: its text may stand in a misspelt segment."""
    try:
        scan(content)
    except TagError:
        return True
    return False


def _holds_text(content: object) -> bool:
    items = content if isinstance(content, (list, tuple)) else ()
    return any(isinstance(item, (str, TextPart)) or getattr(item, "modality", "") == "text" for item in items) or any(
        isinstance(item, Mapping) and "text" in item for item in items
    )


def _sends_media(name: str, value: object, sent: SentColumns) -> bool:
    """Return whether the default message sends media of a column."""
    if value is None or name in (QUESTION, sent.output_column):
        return False
    return name in sent.mapped or media_column(name) is not None or bool(type(value) is not str and modality_of(value))


def _unsent_mapped(mapped: Mapping[str, str], columns: Collection[str], fed: str) -> Iterator[RowNote]:
    """Yield a note on the columns that ``--map`` names but from which nothing is sent."""
    unsent = [name for name in mapped if fed or name not in columns or name == QUESTION]
    if unsent:
        near = nearest(unsent[0], [name for name in columns if name != QUESTION])
        hint = f"leave out --map: only '{fed}' is sent" if fed else near
        yield "MM605", f"no media are sent from {', '.join(map(repr, unsent))}, although --map asks for them", hint


def _unsent_texts(names: Collection[str], fed: str) -> Iterator[RowNote]:
    """Yield a note for the columns with text in a row of which only media are sent."""
    if names:
        hint = f"tag the text in '{fed}'" if fed else "name the text with --map COLUMN=question"
        left = names_in_short(map(repr, names))
        yield "MM606", f"only media are sent, but not the text of {left}", f"{hint}, or {USE_TEMPLATE}"


def _unsent_choices(names: Sequence[str]) -> Iterator[RowNote]:
    """Yield a note on the columns that look like choices and of which nothing is sent."""
    if names:
        hint = 'write them as a list: ["cat", "dog"]' if names[0] in LISTS else "rename the columns to A, B, …"
        yield "MM606", f"the choices in {names_in_short(map(repr, names))} are not sent", f"{hint}, or {USE_TEMPLATE}"


def _has_text(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_text, value))
    if isinstance(value, str):
        return not is_empty(value)
    return isinstance(value, Mapping) and modality_of(value) is None


def _unsent_media(columns: Mapping[str, str], fed: str) -> Iterator[RowNote]:
    """Yield a note for each column that looks like media (column to modality) in a row of which only text is sent."""
    for name, modality in columns.items():
        hint = f"put it into '{fed}'" if fed else f"add --map {names_in_short([name])}={modality}"
        yield "MM605", f"only text is sent, but {shown(name)} looks like {modality}", f"{hint}, or {USE_TEMPLATE}"


Groups = Mapping[str, Sequence[str]]
"""Media columns by name; numbered ones, of which a row need not fill each, stand together"""


class SentColumns(NamedTuple):
    """The columns that a task sends.

    ``mapped`` are those that ``--map`` names, column to modality. ``output_column`` is the answer's. With
    ``list_cells`` a cell may be a list written as text. ``shows_answer`` is False where a meta template follows, and
    ``expects_answer`` where the task names the answer's column itself, or says that no column has it.
    """

    mapped: Mapping[str, str]
    output_column: str
    list_cells: bool
    shows_answer: bool
    expects_answer: bool

    def media(self, columns: Collection[str], slots: Sequence[str] | None) -> Groups:
        """Return the media columns among the columns of a row.

        ``slots`` are those of the template's media parts; for a task without a template (None) names decide.
        """
        if slots is not None:
            return {name: [name] for name in slots if name in columns}
        found: dict[str, list[str]] = {}
        for name in columns if CONTENT not in columns else ():
            modality, numbered = (name, False) if name in self.mapped else media_column(name) or ("", False)
            if modality and name != self.output_column:
                found.setdefault(f"{modality}_1" if numbered else name, []).append(name)
        return found

    def lacking(self, columns: Mapping[str, object], media: Groups) -> list[str]:
        """Return those of the media columns of a row that hold nothing."""
        return [
            name
            for name, names in media.items()
            if not any(media_of_cell(columns[each], cells=self.list_cells) for each in names)
        ]


def empty_notes(
    shapes: Sequence[tuple[Sequence[str], int, Groups, Mapping[str, int]]], slots: Sequence[str] | None
) -> Iterator[tuple[int, str, str]]:
    """Yield, for each media column that holds nothing in some rows, their number, the text of the note and its hint.

    Each of ``shapes`` has the columns of rows, their number, their media columns, and how many hold nothing in each.
    A column is missing if other rows have it, or if one of ``slots``, other than the modalities, names it.
    """
    present = {name for _, _, media, _ in shapes for name in media}
    strange = {name for name in slots or () if name not in (*present, *CONTENT_SLOTS, "mm_url")}
    for name in sorted(present | strange):
        rows = sum(empty.get(name, 0) if name in media else count for _, count, media, empty in shapes)
        if rows:
            hint = nearest(name, shapes[0][0]) if name in strange else "fill it where a row should have media"
            yield rows, f"the media column {shown(name)} is missing, null or blank, so it gives no media", hint


def tag_note(name: str, text: str, *, by_rule: bool) -> RowNote | None:
    """Return a note if the text of a column holds a misspelt tag that is sent as text.

    ``by_rule``: the column is tagged whatever it holds. Any other is tagged if it begins with a start tag.
    """
    if by_rule or begins_tagged(text):
        if mark := near_miss_in_text(text):
            return "MM102", f"a text segment of '{name}' holds a misspelt tag, which is sent as text", f"correct {mark}"
    elif (found := near_miss(text)) and not text[: found[0]].strip():
        what = f"'{name}' begins with a misspelt tag, so it is sent as text and its tags are not read"
        return "MM102", what, f"write {found[2]} in place of {found[1]}"
    return None
