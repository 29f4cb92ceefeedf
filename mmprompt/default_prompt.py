"""The prompt of a row without a template: one user message with the row's media and question.

The tagged column feeds it if there is one; else the columns that hold media, in their order, then ``question``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mmprompt.cells import listed
from mmprompt.errors import MMPromptError, TemplateError
from mmprompt.media.classify import is_media_object
from mmprompt.parts import MediaRef, Message, Part, TextPart
from mmprompt.segments import scan
from mmprompt.templates.entry import CONTENT, Entry

QUESTION = "question"
_NAMED = re.compile(r"(image|audio|video)(?:s|_path|_paths|_url|_urls|(_\d+))?")
_KNOWN: dict[str, tuple[str, bool] | None] = {}


def default_messages(entry: Entry, media_columns: Mapping[str, str] | None = None) -> list[Message]:
    """Return the one user message of a row.

    ``media_columns`` adds columns that hold media, column to modality.

    Raises:
        TemplateError: the row has nothing to say, or a null in the column that feeds the message.
        TagError: the tags of its tagged column do not pair.
    """
    value = entry.columns.get(CONTENT)
    if isinstance(value, str):
        if not entry.scanned:
            return _message([TextPart(value)], entry)
        try:
            spans = scan(value)
        except MMPromptError as error:
            raise error.located(column=CONTENT) from None
        return _message([TextPart(v) if m == "text" else MediaRef(m, v) for m, v, _, _ in spans if v], entry)
    tagged = next((c for c in (CONTENT, QUESTION) if entry.segments(c) is not None), None)
    if tagged is None:
        return _message(list(_column_parts(entry, media_columns or {})), entry)
    parts: list[Part] = []
    for segment in entry.segments(tagged) or ():
        if segment.modality != "text":
            parts.append(MediaRef(segment.modality, segment.value))
        elif segment.value:
            parts.append(TextPart(str(segment.value)))
    return _message(parts, entry)


def _message(parts: list[Part], entry: Entry) -> list[Message]:
    if not parts or (len(parts) == 1 and isinstance(parts[0], TextPart) and not parts[0].text):
        columns = ", ".join(map(str, entry.columns)) or "none"
        raise TemplateError(
            "the row has nothing to send",
            f"give it 'content', a media column or 'question', or use a task with a template (its columns: {columns})",
        ).located(column=CONTENT if CONTENT in entry.columns else None)
    return [Message("user", parts)]


def _column_parts(entry: Entry, media_columns: Mapping[str, str]) -> Iterator[Part]:
    for column, value in entry.columns.items():
        found = media_column(column) if column not in media_columns else (media_columns[column], False)
        if found is None and is_media_object(value):
            found = ("audio" if _is_sound(value) else "image", False)
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


def _is_sound(value: object) -> bool:
    return isinstance(value, tuple) or (isinstance(value, Mapping) and "array" in value)


def _null(column: str) -> TemplateError:
    return TemplateError(
        f"column '{column}' is null, and it feeds the message", "give it a value, or drop the row"
    ).located(column=column)
