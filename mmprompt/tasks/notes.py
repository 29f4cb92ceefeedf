"""What a task says and its first row does not bear out, what of the row goes to no model, and what should not.

All of it is told as notes, since a row may well hold what is meant for nobody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from mmprompt.datasets.list_cells import list_of_cell
from mmprompt.datasets.media_columns import media_column, modality_of
from mmprompt.datasets.row_ids import ID_COLUMNS
from mmprompt.errors import SourceError, names_in_short, nearest, shown
from mmprompt.media.base64_text import clean_head
from mmprompt.media.media_types import any_type, sniff, suffix_type
from mmprompt.media.sources import classify
from mmprompt.messages import MODALITIES, Message, TextPart
from mmprompt.tasks.config import ANSWER, TaskConfig
from mmprompt.tasks.default_prompt import QUESTION
from mmprompt.templates.sample_view import CONTENT, SampleView

_CHOICES = ("A", "B", "C", "D", "choices", "options")
"""What datasets of multiple choice call their choices."""

_TASK = "use a task with a template"


class FirstRow:
    """What a task keeps of the first row it saw, for notes; None before there is one.

    Threads that share a task may each set it once: what stays is of one of their first rows.

    Attributes:
        columns: the names of its columns.
        unsent: the notes of ``unsent_notes``, for a row without a template.
    """

    def __init__(self) -> None:
        self.columns: tuple[str, ...] | None = None
        self.unsent: list[str] | None = None


_MOST_COLUMNS = 20
"""Columns of which each gets a note."""


def column_notes(config: TaskConfig, columns: Collection[str]) -> list[str]:
    """Return a note for each column that ``reader_cfg`` names and the first row lacks.

    The output column is one by default, where the row has a column of nearly that name.
    """
    notes = []
    named = config.names_output or any(name.lower() in (ANSWER, f"{ANSWER}s") for name in columns)
    if named and config.masked is not None and config.masked not in columns:
        what = "so no answer goes out, and none is hidden from prompts"
        notes.append(f"{_lacking('output_column', config.masked)}, {what}; {nearest(config.masked, columns)}")
    lacking = [name for name in config.tagged_columns or () if name not in columns]
    return [*notes, *(f"{_lacking('tagged_columns', name)}; {nearest(name, columns)}" for name in lacking)]


def example_notes(config: TaskConfig, trained: bool) -> list[str]:
    """Return a note for examples that a task speaks of where no retriever takes any.

    ``trained`` tells that there is a dataset of examples.
    """
    infer = config.infer_cfg or {}
    alone = "retriever" not in infer and {"ice_template", "prompt_template"} <= infer.keys()
    unused = "dataset.train" if trained else "ice_template" if alone else ""
    hint = "name one, such as FixKRetriever"
    return [f"{unused} is not used: no retriever takes examples; {hint}"] if unused else []


def shown_answer_notes(messages: Sequence[Message], output_column: str) -> list[str]:
    """Return a note for a chat, sent as it is, whose last message is the model's: it may be the answer asked for."""
    if messages[-1].role != "assistant" or not messages[-1].parts:
        return []
    hint = f"if it is the answer, give it as {shown(output_column)} and not in 'messages'"
    return [f"the first row's last message is the assistant's, and the model is shown it; {hint}"]


def unsent_notes(
    entry: SampleView,
    messages: Sequence[Message],
    media_columns: Mapping[str, str],
    output_column: str | None,
    *,
    chat: bool = False,
) -> list[str]:
    """Return a note for each kind of thing that a row without a template leaves behind.

    The arguments are those of ``default_messages``, and what it returned; ``chat`` tells that the row is a chat.
    """
    columns = entry.columns
    fed = "messages" if chat else CONTENT if CONTENT in columns else ""
    sent = {type(part) is TextPart for message in messages for part in message.parts}
    used = {fed} if fed else {QUESTION, *media_columns}
    known = {*ID_COLUMNS, *used, output_column}
    beside = {name: value for name, value in columns.items() if name not in known}
    mapped = list(_unsent_mapped(media_columns, columns, fed))
    notes = list(mapped)
    if not fed:
        notes += _unusual_texts(columns)
    if True not in sent and not chat:
        notes += _unsent_texts(beside, fed)
    if False not in sent and not mapped:
        notes += islice(_unsent_media(beside, fed, entry.list_cells), _MOST_COLUMNS)
    return notes


def _unsent_mapped(media_columns: Mapping[str, str], columns: Mapping[str, object], fed: str) -> Iterator[str]:
    """Give a note on the columns that are mapped and send nothing."""
    unsent = [name for name in media_columns if fed or name not in columns or name == QUESTION]
    if unsent:
        near = nearest(unsent[0], [name for name in columns if name != QUESTION])
        hint = f"its '{fed}' is all it sends" if fed else near
        yield f"the first row sends no media of {', '.join(map(repr, unsent))}, which --map names; {hint}"


def _unusual_texts(columns: Mapping[str, object]) -> Iterator[str]:
    """Give a note for choices beside the question, and for a question that is no text."""
    question = columns.get(QUESTION)
    if isinstance(question, (list, Mapping)):
        yield f"the first row's 'question' is {type(question).__name__}, sent as Python writes it; {_TASK}"
    if QUESTION in columns and (choices := [name for name in _CHOICES if name in columns]):
        yield f"the first row's choices ({', '.join(choices)}) are not sent; {_TASK}"


def _unsent_texts(columns: Mapping[str, object], fed: str) -> Iterator[str]:
    """Give a note for the columns of text, nested or not, of a row that sends media alone."""
    names = [name for name, value in columns.items() if _has_text(value) and not media_column(name)]
    if names:
        hint = f"tag the text in '{fed}'" if fed else "call the text 'question'"
        left = names_in_short(map(repr, names))
        yield f"the first row sends media alone, and of its texts not {left}; {hint}, or {_TASK}"


def _has_text(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_text, value))
    return isinstance(value, str) or (isinstance(value, Mapping) and modality_of(value) is None)


def _unsent_media(columns: Mapping[str, object], fed: str, cells: bool) -> Iterator[str]:
    """Give a note for each column that holds media, by the look of it, of a row that sends text alone."""
    for name, value in columns.items():
        modality = next(filter(None, (_modality(element) for element in list_of_cell(value, cells=cells))), None)
        if modality is None:
            continue
        hint = f"put it into '{fed}'" if fed else f"add --map {names_in_short([name])}={modality}"
        yield f"the first row sends text alone, and {shown(name)} looks like {modality}; {hint}, or {_TASK}"


def _modality(value: object) -> str | None:
    """Return the modality of what can hardly be anything but a medium or the source of one, or None."""
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


def _lacking(setting: str, name: str) -> str:
    return f"{setting} names {shown(name)}, a column that the first row lacks"
