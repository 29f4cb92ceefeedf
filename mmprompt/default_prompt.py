"""The prompt of a row without a template: one user message with the row's media and question.

The tagged column feeds it if there is one; else the columns that hold media, in their order, then ``question``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mmprompt.cells import is_sound_pair, listed
from mmprompt.errors import MMPromptError, TemplateError
from mmprompt.media.classify import is_media_object
from mmprompt.media.media_types import any_type, sniff, suffix_type
from mmprompt.parts import MediaRef, Message, Part, TextPart, part_of
from mmprompt.segments import scan
from mmprompt.templates.entry import CONTENT, Entry

QUESTION = "question"
_NAMED = re.compile(r"(image|audio|video)(?:s|_path|_paths|_url|_urls|(_\d+))?")
_new = tuple.__new__  # half the time of the class, and this runs for every row
_KNOWN: dict[str, tuple[str, bool] | None] = {}


def default_messages(
    entry: Entry, media_columns: Mapping[str, str] | None = None, output_column: str | None = None
) -> list[Message]:
    """Return the one user message of a row.

    ``media_columns`` adds columns that hold media, column to modality. Media in ``output_column`` are not sent: they
    are the answer.

    Raises:
        TemplateError: the row has nothing to say, or a null in the column that feeds the message.
        TagError: the tags of its tagged column do not pair.
    """
    value = entry.columns.get(CONTENT)
    if isinstance(value, str):
        if not entry.scanned:
            return _message([TextPart(value)] if value else [], entry)
        try:
            spans = scan(value)
        except MMPromptError as error:
            raise error.located(column=CONTENT) from None
        parts: list[Part] = [
            _new(TextPart, (text, ())) if modality == "text" else _new(MediaRef, (modality, text, "", (), (), None))
            for modality, text, _, _ in spans
            if text
        ]
        return _message(parts, entry)
    tagged = next((c for c in (CONTENT, QUESTION) if entry.segments(c) is not None), None)
    if tagged is None:
        if isinstance(value, (int, float)):
            return _message([TextPart(str(value))], entry)
        if value is not None and _modality_of(value) is None:
            raise TemplateError(
                f"column '{CONTENT}' holds {type(value).__name__}",
                "give text, tagged or not, or a list of content parts",
            ).located(column=CONTENT)
        return _message(list(_column_parts(entry, media_columns or {}, output_column)), entry)
    own = entry.columns[tagged]
    if isinstance(own, (list, tuple)) and all(isinstance(v, Mapping) for v in own):
        return _message([part_of(v) for v in own if v.get("text") != ""], entry)  # content parts keep all their keys
    parts = []
    for segment in entry.segments(tagged) or ():
        if segment.modality != "text":
            parts.append(MediaRef(segment.modality, segment.value))
        elif segment.value:
            parts.append(TextPart(str(segment.value)))
    return _message(parts, entry)


def _message(parts: list[Part], entry: Entry) -> list[Message]:
    """Return the message of these parts, none of which is an empty text."""
    if not parts:
        columns = ", ".join(map(str, entry.columns)) or "none"
        raise TemplateError(
            "the row has nothing to send",
            f"give it 'content', a media column or 'question', or use a task with a template (its columns: {columns})",
        ).located(column=QUESTION if QUESTION in entry.columns and CONTENT not in entry.columns else CONTENT)
    return [_new(Message, ("user", tuple(parts), None, (), None))]


def _column_parts(entry: Entry, media_columns: Mapping[str, str], output_column: str | None) -> Iterator[Part]:
    for column, value in entry.columns.items():
        if column in media_columns:
            found: tuple[str, bool] | None = (media_columns[column], False)
        elif column == output_column:
            continue
        else:
            found = media_column(column)
            if found is None and type(value) is not str and (modality := _modality_of(value)):
                found = (modality, False)
        if found is None or column == QUESTION:
            continue
        modality, numbered = found
        if value is None and numbered:
            continue
        for element in listed(value, cells=entry.list_cells):
            if element is None:
                raise _null(column)
            yield MediaRef(modality, element)
    if QUESTION in entry.columns:
        question = entry.columns[QUESTION]
        if question is None:
            raise _null(QUESTION)
        if text := str(question):
            yield TextPart(text)


def media_column(column: str) -> tuple[str, bool] | None:
    """Return the modality that a column's name says, and whether it is one of a numbered series (``image_2``)."""
    if column not in _KNOWN:
        match = _NAMED.fullmatch(column) if isinstance(column, str) else None
        if len(_KNOWN) > 1000:
            _KNOWN.clear()
        _KNOWN[column] = (match.group(1), match.group(2) is not None) if match else None
    return _KNOWN[column]


def _modality_of(value: object) -> str | None:
    """Return the modality of a value that is media by its type, whatever its column is called, or None."""
    if value is None or isinstance(value, (str, int, float)):
        return None
    if isinstance(value, (bytes, bytearray, memoryview)):
        kind = sniff(bytes(value[:4096]))
        return any_type(kind).partition("/")[0] if kind else None
    if isinstance(value, Mapping):
        if "array" in value and "sampling_rate" in value:
            return "audio"
        if value.get("bytes") is not None:
            return _modality_of(value["bytes"])
        path = value.get("path")
        named = suffix_type(path) if "bytes" in value and isinstance(path, str) else None
        return named.partition("/")[0] if named else None
    if isinstance(value, (list, tuple)):
        if is_sound_pair(value):
            return "audio"
        first = _modality_of(value[0]) if value else None
        return first if first and all(_modality_of(element) == first for element in value) else None
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return "image" if str(value.dtype) == "uint8" and len(value.shape) in (2, 3) else None
    return "image" if is_media_object(value) else None


def _null(column: str) -> TemplateError:
    return TemplateError(
        f"column '{column}' is null, and it feeds the message", "give it a value, or drop the row"
    ).located(column=column)
