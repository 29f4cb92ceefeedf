"""Rules on AIS tags that are read, or that stand where none is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from mmprompt.check.facts import is_tagged
from mmprompt.check.rule import CheckedRow, Fix, Hit, RowText, row_rule
from mmprompt.errors import MMPromptError, TagError, names_in_short, shown
from mmprompt.segments import START_TAGS, TERMINATOR, near_miss, scan

_TAGS = (*START_TAGS, TERMINATOR)
_ESCAPED = re.compile(r"(?:&lt;|&#60;|\uff1c) ?(AIS_[A-Z_]{1,20}) ?(?:&gt;|&#62;|\uff1e)", re.IGNORECASE)
_MARKS = 100
"""Escaped marks of one text that are compared with the tags."""


@row_rule("MM102", explains=("MM102",))
def misspelt_tag(row: CheckedRow) -> Iterator[Hit]:
    """The near misses of tags in a column that cannot be read, or one in a text segment, which goes out as text."""
    for error in row.errors:
        value = None if error.where.column is None else row.columns.get(error.where.column)
        if error.code == "MM102" and isinstance(value, str):
            yield _all_misspelt(error, value)
    for text in row.texts:
        if text.tagged and (found := near_miss(text.text) or _escaped(text.text)) and not _failed(row):
            offset, mark, tag = found
            hint = f"write {tag}, if it is meant as a tag"
            yield Hit(f"the text holds {shown(mark)}, which is sent as text", hint, text.column, text.at(offset))


def _all_misspelt(error: MMPromptError, value: str) -> Hit:
    """Return the hit for the error of the first misspelt tag of a column, with those that follow it."""
    where = error.where
    at = where.offset or 0
    pieces, found = [value[:at]], dict[str, str]()
    for _ in range(_MARKS):
        if (near := near_miss(value, at)) is None:
            break
        offset, mark, tag = near
        found |= {} if mark == tag else {mark: tag}
        pieces += [value[at:offset], tag]
        at = offset + len(mark)
    mended = "".join([*pieces, value[at:]])
    is_certain = all(mark.upper().replace("_IMG_", "_IMAGE_") == tag for mark, tag in found.items())
    fix = Fix(where.column or "", mended) if is_certain and _reads(mended) else None
    what, hint = error.what, error.hint
    if len(found) > 1:
        what, hint = f"misspelt tags {names_in_short(found)}", f"write {names_in_short(found.values())}"
    return Hit(what, hint, where.column, where.offset, fix=fix, part=where.part, left_out=True)


def _reads(value: str) -> bool:
    try:
        scan(value)
    except TagError:
        return False
    return True


@row_rule("MM103")
def text_outside_segments(row: CheckedRow) -> Iterator[Hit]:
    """Text outside the segments of a column that also has tagged text."""
    for column, value in _tagged_columns(row):
        outside = [text for text in row.texts if text.column == column and not _is_inside(value, text.offset or 0)]
        if outside and len(outside) < len([text for text in row.texts if text.column == column]):
            what = f"{shown(outside[0].text.strip(), 40)} stands outside the segments, beside text in its own segment"
            hint = f"put it between <AIS_TEXT_START> and {TERMINATOR}, or remove it"
            yield Hit(what, hint, column, outside[0].offset, fix=Fix(column, _enclosed(value, outside)))


@row_rule("MM104")
def unclosed_last_tag(row: CheckedRow) -> Iterator[Hit]:
    """The last segment lacks its terminator."""
    for column, value in _tagged_columns(row):
        if _ends_open(value):
            fix = None if _is_cut(value) else Fix(column, value + TERMINATOR)
            yield Hit("the last segment is not closed", f"add {TERMINATOR} at the end", column, len(value), fix=fix)


@row_rule("MM105")
def tag_in_text(row: CheckedRow) -> Iterator[Hit]:
    """A tag in a column whose tags are not read."""
    for text in row.texts:
        if text.tagged:
            continue
        marks = [(at, tag) for tag in _TAGS if (at := text.text.find(tag)) >= 0]
        if near := near_miss(text.text) or _escaped(text.text):
            marks.append(near[:2])
        if marks:
            found = min(marks)
            hint = "give the column as 'content' in JSON lines, or list it in reader_cfg.tagged_columns"
            if text.column is None or not row.sample.scanned:
                hint = "write the row as JSON lines with a column 'content', or remove the tag"
            yield Hit(f"the text holds {shown(found[1])}, which is sent as text", hint, text.column, text.at(found[0]))


@row_rule("MM106")
def blank_segment(row: CheckedRow) -> Iterator[Hit]:
    """A text segment without text."""
    for text in row.texts if row.question.strip() else ():  # MM700 tells a row without any text
        if text.tagged and not text.text.strip():
            yield Hit("the text segment is blank", "give its text, or remove the segment", text.column, text.offset)


def _tagged_columns(row: CheckedRow) -> Iterator[tuple[str, str]]:
    """Yield the columns of a row whose tags are read and pair."""
    for column, value in row.columns.items():
        if isinstance(value, str) and "<AIS_" in value and is_tagged(column, value, row.sample, row.task):
            try:
                scan(value)
            except TagError:
                continue
            yield column, value


def _escaped(text: str) -> tuple[int, str, str] | None:
    """Return the first tag in full-width signs or HTML escapes, as ``near_miss`` does."""
    for mark in islice(_ESCAPED.finditer(text), _MARKS):
        tag = f"<{mark[1].upper()}>"
        if tag in _TAGS:
            return mark.start(), mark[0], tag
    return None


def _failed(row: CheckedRow) -> bool:
    return any(error.code == "MM102" for error in row.errors)


def _is_inside(value: str, start: int) -> bool:
    """Return whether the text segment that begins at ``start`` stands behind its tag."""
    return value.endswith("<AIS_TEXT_START>", 0, start)


def _enclosed(value: str, outside: Sequence[RowText]) -> str:
    """Return tagged text with the texts outside its segments in segments of their own."""
    pieces, done = [], 0
    for text in outside:
        start = text.offset or 0
        pieces += [value[done:start], "<AIS_TEXT_START>", text.text, TERMINATOR]
        done = start + len(text.text)
    return "".join([*pieces, value[done:]])


def _ends_open(value: str) -> bool:
    """Return whether the last tag of a tagged text opens a segment."""
    last = max(_TAGS, key=value.rfind)
    return last != TERMINATOR


def _is_cut(value: str) -> bool:
    """Return whether a text ends in what may be meant as the terminator."""
    end = value[max(value.rfind("<"), 0) :]
    found = near_miss(end)
    return TERMINATOR.startswith(end.rstrip()) or (found is not None and found[2] == TERMINATOR)
