"""The prompt of a row without a template: one user message with the row's media and question.

If the row has the tagged column ``content``, the message holds its parts. Otherwise it holds the media columns in their
order, then a text: ``hint``, ``question`` and the choices, each on separate lines. Tags in this text are not read:
only a task makes another column tagged.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping

from mmprompt.datasets.choices import choices_in, is_empty, option_lines
from mmprompt.datasets.list_cells import list_of_cell
from mmprompt.datasets.media_columns import looks_like, media_column, media_of_cell, modality_of
from mmprompt.errors import NO_COLUMN, MMPromptError, RowError, TemplateError, Where, names_in_short, short_name
from mmprompt.messages import MediaRef, Message, Part, TextPart, joined_text, text_of
from mmprompt.segments import scan
from mmprompt.templates.sample_view import CONTENT, SampleView, null_column

QUESTION = "question"
HINT = "hint"
_NOTHING = TextPart("")
SYSTEM = "system"  # a role that --map gives
_new = tuple.__new__  # half the time of the class, and this runs for every row


def default_messages(
    entry: SampleView, media_columns: Mapping[str, str] | None = None, output_column: str | None = None
) -> list[Message]:
    """Return the one user message of a row.

    ``media_columns`` maps further media columns to their modality; the text of a column that it maps to ``system``
    goes before, as a system message. Media in ``output_column`` are the answer, and are not sent.

    Raises:
        TemplateError: the row has nothing to send, or null in a column that the message needs.
        TagError: the tags of its tagged column do not pair.
    """
    if media_columns and SYSTEM in media_columns.values():
        media = {column: modality for column, modality in media_columns.items() if modality != SYSTEM}
        text = entry.raw.get(SYSTEM)
        is_given = text is not None and not (isinstance(text, str) and not text)
        begin = [Message(SYSTEM, text_of(text))] if is_given else []
        return [*begin, *default_messages(entry, media, output_column)]
    value = entry.raw.get(CONTENT)
    if isinstance(value, str) and entry.hidden != CONTENT:
        return content_messages(value, scanned=entry.scanned)
    if value is None or entry.segments(CONTENT) is None:
        mapped = media_columns or {}
        parts = list(_column_parts(entry, mapped, output_column))
        if not parts and value is None and CONTENT in entry.columns:
            raise null_column(CONTENT)
        if not parts and not any(c == QUESTION or c in mapped or media_column(c) for c in entry.columns):
            raise _no_column(entry)
        return _message(parts, entry.columns)
    return _message([part for part in entry.parts(CONTENT) if part != _NOTHING], entry.columns)


def content_messages(content: str, *, scanned: bool = True) -> list[Message]:
    """Return the user message of a text in the column ``content``; its tags are read if it is ``scanned``."""
    if not scanned:
        return _message([TextPart(content)] if content else [], (CONTENT,))
    try:
        spans = scan(content)
    except MMPromptError as error:
        raise error.located(column=CONTENT) from None
    parts: list[Part] = [
        _new(TextPart, (text, ())) if modality == "text" else _new(MediaRef, (modality, text, "", (), (), None))
        for modality, text, _, _ in spans
        if text
    ]
    if not parts:
        raise _nothing((CONTENT,))
    return [_new(Message, ("user", tuple(parts), None, (), None))]


def _message(parts: list[Part], columns: Collection[str]) -> list[Message]:
    """Return the message of these parts; empty texts were left out."""
    if not parts:
        raise _nothing(columns)
    return [Message("user", parts)]


def _nothing(columns: Collection[str]) -> TemplateError:
    names = names_in_short(columns) or "none"
    return TemplateError(
        "the row has nothing to send",
        f"give it 'content', a media column or 'question', or use a task with a template (its columns: {names})",
        code="MM700",
    ).located(column=QUESTION if QUESTION in columns and CONTENT not in columns else CONTENT)


def _no_column(entry: SampleView) -> TemplateError:
    """Return the error of a row in which no column has a name that the message uses."""
    found: dict[str | None, str] = {}
    for name, value in entry.columns.items():
        found.setdefault(looks_like(value, entry.list_cells), name)
    media = [f"--map {shlex.quote(f'{short_name(name)}={modality}')}" for modality, name in found.items() if modality]
    return TemplateError(
        "the row has nothing to send: no column is 'content', 'question' or named as a media column",
        f"name them with {', '.join(media) or '--map COLUMN=image'} and --map COLUMN=question, or let mmprompt init"
        f" write a task file (columns: {names_in_short(entry.columns) or 'none'})",
        Where(column=CONTENT, setting=NO_COLUMN),
        code="MM700",
    )


def _no_question(columns: Collection[str]) -> TemplateError:
    names = names_in_short(columns)
    hint = f"name its column with --map COLUMN=question, or use a task with a template (columns: {names})"
    where = Where(column=QUESTION, setting=NO_COLUMN)
    return TemplateError("the row has choices and no question", hint, where, "MM700")


def _column_parts(entry: SampleView, media_columns: Mapping[str, str], output_column: str | None) -> Iterator[Part]:
    for column, value in entry.columns.items():
        if column in media_columns:
            found: tuple[str, bool] | None = (media_columns[column], False)
        elif column == output_column:
            continue
        else:
            found = media_column(column)
            if found is None and type(value) is not str and (modality := modality_of(value)):
                found = (modality, False)
        if found is None or column in (QUESTION, HINT):
            continue
        for element in media_of_cell(value, cells=entry.list_cells):
            yield MediaRef(found[0], element)
    if text := question_text(entry.columns):
        if QUESTION not in entry.columns and not any(media_column(c) or c in media_columns for c in entry.columns):
            raise _no_question(entry.columns)
        yield TextPart(text)


def question_text(columns: Mapping[str, object]) -> str:
    """Return the text of a row: its hint, its question and its choices as lettered lines; empty if it has none."""
    lines = []
    if QUESTION in columns:
        if columns[QUESTION] is None:
            raise null_column(QUESTION)
        if HINT in columns and (hint := hint_of(columns)):
            lines.append(hint)
        if not is_empty(columns[QUESTION]):
            lines.append(text_of(columns[QUESTION]))
    choices = choices_in(columns)
    if choices.texts:
        lines.append(option_lines(choices))
    return joined_text(lines, "\n")


def hint_of(columns: Mapping[str, object]) -> str:
    """Return the hint of a row, a list as one line for each text; empty if it has none.

    Raises:
        RowError: it is neither text nor a list of texts.
    """
    value = columns.get(HINT)
    if value is None:
        return ""
    lines = [line for line in list_of_cell(value) if not is_empty(line)]
    for line in lines:
        if not isinstance(line, (str, int, float)):
            what = f"'{HINT}' holds {type(line).__name__}"
            raise RowError(what, "give a text, or a list of texts", code="MM007").located(column=HINT)
    return joined_text(map(text_of, lines), "\n")
