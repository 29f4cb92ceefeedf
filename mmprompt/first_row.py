"""What the first row tells of a run: columns that are named and not there, and what of the row goes to no model.

All of it is told as notes, since a row may well hold what is meant for nobody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from mmprompt.cells import listed
from mmprompt.default_prompt import QUESTION
from mmprompt.errors import SourceError, nearest, shown
from mmprompt.media.base64_text import clean_head
from mmprompt.media.classify import classify
from mmprompt.media.media_types import any_type, sniff, suffix_type
from mmprompt.media.read import MODALITIES
from mmprompt.parts import Message, TextPart
from mmprompt.row_ids import ID_COLUMNS
from mmprompt.structure import media_column
from mmprompt.task_config import TaskConfig
from mmprompt.templates.entry import CONTENT, Entry

_CHOICES = ("A", "B", "C", "D", "choices", "options")
"""What datasets of multiple choice call their choices."""

_HEAD = 160
"""Characters of base64 that tell of what kind it is."""


def column_notes(config: TaskConfig, columns: Collection[str]) -> list[str]:
    """Return a note for each column that ``reader_cfg`` names and the first row lacks."""
    notes = []
    if config.names_output and config.masked is not None and config.masked not in columns:
        what = "so no answer goes out, and none is hidden from prompts"
        notes.append(f"{_lacking('output_column', config.masked)}, {what}; {nearest(config.masked, columns)}")
    lacking = [name for name in config.tagged_columns or () if name not in columns]
    return [*notes, *(f"{_lacking('tagged_columns', name)}; {nearest(name, columns)}" for name in lacking)]


def unsent_notes(
    entry: Entry, messages: list[Message], media_columns: Mapping[str, str], output_column: str | None
) -> list[str]:
    """Return a note for each kind of thing that a row without a template leaves behind.

    The arguments are those of ``default_messages``, and what it returned.
    """
    columns = entry.columns
    mapped = list(_unsent_mapped(media_columns, columns))
    notes = list(mapped)
    parts = [part for message in messages for part in message.parts]
    texts = [part for part in parts if isinstance(part, TextPart)]
    known = {*ID_COLUMNS, QUESTION, CONTENT, output_column}
    beside = {name: value for name, value in columns.items() if name not in known}
    if not texts and CONTENT not in columns:
        names = [name for name, value in beside.items() if isinstance(value, str) and not media_column(name)]
        if names := [name for name in names if name not in media_columns]:
            what = f"the first row sends media alone, and of its texts not {', '.join(map(repr, names))}"
            notes.append(f"{what}; call the text 'question', or use a task with a template")
    elif CONTENT not in columns and (choices := [name for name in _CHOICES if name in beside]):
        notes.append(f"the first row's choices ({', '.join(choices)}) are not sent; use a task with a template")
    if len(texts) == len(parts) and not mapped:
        notes += _unsent_media(beside, CONTENT in columns, entry.list_cells)
    return notes


def _unsent_mapped(media_columns: Mapping[str, str], columns: Mapping[str, object]) -> Iterator[str]:
    """Give a note on the columns that are mapped and send nothing."""
    unsent = [name for name in media_columns if name not in columns or name == QUESTION or CONTENT in columns]
    if unsent:
        mend = "its 'content' is all it sends"
        if CONTENT not in columns:
            mend = nearest(unsent[0], [name for name in columns if name != QUESTION])
        yield f"the first row sends no media of {', '.join(map(repr, unsent))}, which --map names; {mend}"


def _unsent_media(columns: Mapping[str, object], tagged: bool, cells: bool) -> Iterator[str]:
    """Give a note for each column that holds media, by the look of it, of a row that sends text alone."""
    for name, value in columns.items():
        modality = next(filter(None, (_modality(element) for element in listed(value, cells=cells))), None)
        if modality is None:
            continue
        start = f"<AIS_{modality.upper()}_START>"
        mend = f"tag it in 'content' ({start}…)" if tagged else f"add --map {name}={modality}"
        yield f"the first row sends text alone, and {shown(name)} looks like {modality}; {mend}, or use a task"


def _modality(value: object) -> str | None:
    """Return the modality of a text that can hardly be anything but the source of a medium, or None."""
    if not isinstance(value, str):
        return None
    try:
        kind = classify(value).kind
    except SourceError:
        return None
    if kind == "base64":
        found = sniff(clean_head(value[:_HEAD]) or b"")
        named = any_type(found) if found else None
    elif kind == "data":
        named = value.lower().removeprefix("data:")
    else:
        named = suffix_type(value.partition("?")[0] if kind == "url" else value)
    modality = (named or "").partition("/")[0]
    return modality if modality in MODALITIES and "\n" not in value else None


def _lacking(setting: str, name: str) -> str:
    return f"{setting} names {shown(name)}, a column that the first row lacks"
