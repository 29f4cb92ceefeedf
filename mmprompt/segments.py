"""AIS tags: parses the text of a tagged column into segments, and joins segments into text.

    <AIS_TEXT_START>What is this?<AIS_CONTENT_TAG><AIS_IMAGE_START>cat.jpg<AIS_CONTENT_TAG>

The parser goes from one ``<`` to the next with ``str.find`` and slices: its time is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

from mmprompt.errors import TagError, expect, nearest, shown
from mmprompt.messages import Value, blank, stands_in

MODALITIES = ("text", "image", "audio", "video")
TERMINATOR = "<AIS_CONTENT_TAG>"
START_TAGS = {f"<AIS_{m.upper()}_START>": m for m in MODALITIES}
_STARTS = tuple(START_TAGS)
_STEP = len(TERMINATOR)
_modality_of = {tag[:-1]: modality for tag, modality in START_TAGS.items()}.get
_TAGS = (TERMINATOR, *_STARTS)
_HEAD = "<AIS_"
_OPENS = {**START_TAGS, TERMINATOR: ""}  # tag to the modality it opens; the terminator opens none
_SHORT, _LONG = sorted({len(tag) for tag in _OPENS})
_NAMES = {tag[1:-1]: tag for tag in _TAGS}
_MARK = rf"<[\s/]{{0,3}}({'|'.join(_NAMES)}|ais[\s_-]{{0,3}}[a-z]{{1,12}}(?:[\s_-]{{1,3}}[a-z]{{1,12}})?)[\s/]{{0,3}}>?"
"""What may be a misspelt tag; compiled on use, which few texts make."""

_LITTLE = 4096  # characters: below, two counts take less time than one search for each tag
_MARKS = 100
"""Most marks of one text that are compared with the tags."""

Span = tuple[str, str, int, int]
"""Modality, value, and where the value begins and ends in the text."""


class _SegmentFields(NamedTuple):
    modality: str
    value: Any
    start: int
    end: int


class Segment(_SegmentFields):
    """One piece of a sample: a modality and a value. Immutable.

    The value of a text segment is text. The value of a media segment is its source: a string that names or encodes the
    media, bytes, an image or an array. ``text[start:end]`` is the value in the text it was parsed from. Two segments
    are equal if modality and value are.

    Raises:
        TagError: an unknown modality.
    """

    __slots__ = ()

    def __new__(cls, modality: str, value: object, start: int = 0, end: int = 0) -> Segment:
        """Make a segment; see the class."""
        if modality not in MODALITIES:
            raise TagError(f"unknown modality {shown(modality)}", nearest(modality, MODALITIES))
        return super().__new__(cls, modality, value, start, end)

    def __eq__(self, other: object) -> bool:
        """Compare modality and value; ``start`` and ``end`` do not count."""
        if not isinstance(other, Segment):
            return NotImplemented
        return self.modality == other.modality and _same(self.value, other.value)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        """Hash modality and value; the modality alone if the value cannot be hashed (an array, a struct)."""
        try:
            return hash((self.modality, self.value))
        except TypeError:
            return hash(self.modality)

    def __repr__(self) -> str:
        return f"Segment({self.modality!r}, {shown(self.value)}, {self.start}, {self.end})"


def _same(one: object, other: object) -> bool:
    """Compare two values. Arrays, whose ``==`` gives no bool, are equal only if they are the same object."""
    if one is other:
        return True
    try:
        return bool(one == other)
    except (TypeError, ValueError):
        return False


def parse_segments(text: str, *, lenient: bool = False) -> list[Segment]:
    """Parse the text of a tagged column into its segments, in order.

    Text outside a segment becomes a text segment unless it is blank. A text without tags is one text segment. The last
    terminator may be missing. With ``lenient``, a start tag closes an open segment, and a terminator outside a segment
    is ignored.

    A near miss of a tag, such as ``<ais_image_start>``, is text inside a text segment, and with ``lenient`` anywhere.

    Raises:
        TagError: a start tag inside an open segment, a terminator outside a segment, a blank media segment, or a near
            miss of a tag outside a text segment; ``where.offset`` is the offset of the tag in ``text``. Also if
            ``text`` is not a string.
    """
    expect(text, str, "the tagged text", "give the text of one column", TagError)
    return [Segment(*span) for span in scan(text, lenient=lenient)]


def scan(text: str, *, lenient: bool = False) -> list[Span]:
    """Return the segments of ``parse_segments`` as plain tuples."""
    given: Any = text
    if stands_in(given):
        return _stand_ins(given)
    whole = _whole_segments(text)
    if whole:
        return whole
    spans: list[Span] = []
    position = 0  # the text before it is parsed, and no segment is open
    at = text.find("<")  # a search for one character passes over base64 at the speed of memory
    while at >= 0:
        tag = text[at : at + _LONG]
        modality = _OPENS.get(tag)
        if modality is None:
            tag = tag[:_SHORT]
            modality = _OPENS.get(tag)
            if modality is None:
                at = text.find(_HEAD, at + 1)  # one call passes over text full of <
                continue
        if position < at:
            _add_loose(text, position, at, spans, lenient=lenient)
        position = at + len(tag)
        if modality:
            position = _add_segment(text, modality, position, spans, lenient=lenient)
        elif not lenient:
            raise _stray(at)
        at = text.find("<", position)
    if position < len(text) and (position or "<" in text):
        _add_loose(text, position, len(text), spans, lenient=lenient)
    return spans if position else [("text", text, 0, len(text))]


def _stand_ins(text: Value) -> list[Span]:
    """Return the segments of what stands for a text; what stands for their values."""
    kinds = text.asked(segments_in)
    found: list[Any] = []
    for number, (kind, span) in enumerate(zip(kinds, scan(str(text.real)), strict=True)):
        value = text.element(span[1], None, number)
        value.know(blank, kind.endswith(" "))
        found.append((span[0], value, 0, 0))
    return found


def segments_in(text: str) -> tuple[str, ...]:
    """Return the modality of each segment of a text, with a blank behind it for a blank one; a question, see ``Value``.

    Raises:
        TagError: its tags do not pair.
    """
    return kinds_of(scan(text))


def kinds_of(spans: Iterable[Span]) -> tuple[str, ...]:
    """Return the modality of each segment, with a blank behind it for a blank one."""
    return tuple([m if value and not value.isspace() else f"{m} " for m, value, _, _ in spans])


def _whole_segments(text: str) -> list[Span] | None:
    """Return the spans of a text that consists of plain segments only, as nearly all do; else None."""
    pieces = text.split(TERMINATOR)
    if pieces.pop():
        return None
    spans: list[Span] = []
    position = 0
    for piece in pieces:
        tag, _, value = piece.partition(">")
        modality = _modality_of(tag)
        if modality is None or "<" in value or (modality != "text" and not value.strip()):
            return None
        end = position + len(piece)
        spans.append((modality, value, end - len(value), end))
        position = end + _STEP
    return spans


def _add_segment(text: str, modality: str, start: int, spans: list[Span], *, lenient: bool) -> int:
    """Add the segment whose value begins at ``start``, up to the next tag; return where the text after it begins."""
    first = end = text.find("<", start)
    while end >= 0 and not text.startswith(_TAGS, end):
        end = text.find(_HEAD, end + 1)
    after = end + _STEP
    if first != end and modality != "text" and not lenient:
        _refuse_near_miss(text, first, len(text) if end < 0 else end, "")
    if end < 0:
        end = after = len(text)
    elif not text.startswith(TERMINATOR, end):
        if not lenient:
            raise _still_open(text, modality, end)
        after = end
    value = text[start:end]
    if modality != "text" and not value.strip():
        hint = f"name the {modality} between its tags, or remove the segment"
        raise TagError(f"blank {modality} segment", hint, code="MM106").located(offset=start)
    spans.append((modality, value, start, end))
    return after


def _add_loose(text: str, start: int, end: int, spans: list[Span], *, lenient: bool) -> None:
    """Add text outside any segment, unless it is blank."""
    value = text[start:end]
    if value.strip():
        if not lenient and "<" in value:
            _refuse_near_miss(text, start, end, f", or put text between <AIS_TEXT_START> and {TERMINATOR}")
        spans.append(("text", value, start, end))


def _refuse_near_miss(text: str, start: int, end: int, otherwise: str) -> None:
    """Raise the error of a near miss of a tag in ``text[start:end]``, if there is one."""
    if found := near_miss(text, start, end):
        offset, mark, tag = found
        case = " (tags are upper case)" if mark.upper() == tag else ""
        raise TagError(f"misspelt tag {mark}", f"write {tag}{case}{otherwise}", code="MM102").located(offset=offset)


def near_miss(text: str, start: int = 0, end: int | None = None) -> tuple[int, str, str] | None:
    """Return the first near miss of a tag in ``text[start:end]``: its offset, its text and the tag that was meant.

    It begins with ``<`` and is like a tag but for case, blanks, ``-`` or ``/``, or by a few letters, or its ``>`` is
    missing.
    """
    marks = re.compile(_MARK, re.IGNORECASE).finditer(text, start, len(text) if end is None else end)
    for mark in islice(marks, _MARKS):
        name = "_".join(re.split(r"[\s_-]+", mark[1].upper()))
        if not mark[0].endswith(">") and name not in _NAMES:  # prose
            continue
        begun = name.removesuffix("_END") + "_START" if name.endswith("_END") else name
        from difflib import get_close_matches  # noqa: PLC0415  # only where a text is like a tag

        for near in get_close_matches(begun, _NAMES, n=1, cutoff=0.72):
            closes = name != begun or "/" in mark[0].partition(mark[1])[0]
            return mark.start(), mark[0].rstrip(), TERMINATOR if closes else _NAMES[near]
    return None


def _still_open(text: str, modality: str, offset: int) -> TagError:
    what = f"start tag {text[offset : text.index('>', offset) + 1]} inside an open {modality} segment"
    return TagError(what, f"close the segment before it with {TERMINATOR}", code="MM101").located(offset=offset)


def _stray(offset: int) -> TagError:
    what = f"terminator {TERMINATOR} with no open segment"
    hint = "remove it, or put a start tag such as <AIS_TEXT_START> before the text it closes"
    return TagError(what, hint).located(offset=offset)


def join_segments(segments: Iterable[Segment | tuple[str, str]]) -> str:
    """Return the tagged text of ``segments``, the inverse of ``parse_segments``.

    Args:
        segments: segments, or pairs of modality and value.

    Raises:
        TagError: there are no segments; a value is not a string; a media segment is blank; or a value contains a tag,
            which would turn the text of a dataset into a file read.
    """
    pieces = []
    given: object = segments
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise TagError(f"segments are a list, not {type(given).__name__}", "give segments, or pairs of text")
    for segment in segments:
        if not isinstance(segment, tuple) or len(segment) not in (2, len(Segment._fields)):
            raise TagError(f"{shown(segment)} is not a segment", "give a Segment, or a pair of modality and value")
        modality, value = segment[:2]
        if modality not in MODALITIES:
            raise TagError(f"unknown modality {shown(modality)}", nearest(modality, MODALITIES))
        if not isinstance(value, str):
            raise TagError(
                f"a {modality} segment holds {type(value).__name__}, not text", "give its path or URL as text"
            )
        if found := _first_tag(value) or (modality != "text" and near_miss(value)) or None:
            raise TagError(
                f"the {modality} segment contains the tag {found[1]}",
                "remove the tag from the value",
                code="MM105",
            ).located(offset=found[0])
        if modality != "text" and not value.strip():
            raise TagError(f"blank {modality} segment", f"name the {modality}, or leave the segment out", code="MM106")
        pieces.append(f"<AIS_{modality.upper()}_START>{value}{TERMINATOR}")
    if not pieces:
        raise TagError("no segments to join", "give at least one; an empty text is one empty text segment")
    return "".join(pieces)


def _first_tag(value: str) -> tuple[int, str] | None:
    if _HEAD not in value:
        return None
    return min(((value.index(tag), tag) for tag in _TAGS if tag in value), default=None)


def has_other_brackets(text: str) -> bool:
    """Return whether a text holds a ``<`` that begins no tag."""
    if len(text) < _LITTLE and text.count("<") == 2 * text.count(TERMINATOR):  # two tags a segment, nothing else
        return False
    at = text.find("<")
    while at >= 0 and text.startswith(_TAGS, at):
        at = text.find("<", at + _SHORT)
    return at >= 0


def near_miss_in_text(text: str) -> str | None:
    """Return the first near miss of a tag in a text segment of tagged text; None if there is none or the tags fail."""
    try:
        texts = [value for modality, value, _, _ in scan(text) if modality == "text"]
    except TagError:
        return None
    return next((found[1] for value in texts if (found := near_miss(value))), None)


def begins_tagged(value: object) -> bool:
    """Return whether ``value`` is a string that begins with a start tag, after any blanks."""
    if not isinstance(value, str):
        return False
    given: object = value
    if stands_in(given):
        return bool(given.asked(begins_tagged))
    first = value[:1]
    return value.startswith(_STARTS) if first == "<" else first.isspace() and value.lstrip().startswith(_STARTS)
