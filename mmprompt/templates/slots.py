"""Text with slots, compiled once and filled in one pass.

``{name}`` is a slot if the sample has a column of exactly that name; otherwise it stays as written, with its braces. A
value is never searched for slots, so ``{answer}`` inside a question stays eight characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from operator import itemgetter
from re import Match, Pattern
from typing import NamedTuple, Union

from mmprompt.errors import TemplateError, nearest
from mmprompt.messages import Value, joined_text, text_of

_SLOT = re.compile(r"\{([^{}]*)\}")


class Slot(NamedTuple):
    """A place for the value of ``column``; ``written`` stays there if the sample has no such column.

    ``required``: the sample must have the column.
    """

    column: str
    written: str
    required: bool = False


class Marker(NamedTuple):
    """The place of the in-context examples in a text."""

    token: str


Piece = Union[str, Slot, Marker]


class SlotText(NamedTuple):
    """A compiled text: its pieces, with no two strings side by side.

    ``literal`` is the whole text if it has neither slots nor a marker. ``texts`` are the pieces with ``""`` in place of
    slots and markers; ``slots`` and ``markers`` say where those stand. ``columns`` are the names in braces, in order;
    which of them are slots depends on the sample. ``form`` is the text with ``%s`` for each slot, and ``values`` gives
    the values of all slots, for rows that have all of these columns.
    """

    pieces: tuple[Piece, ...]
    literal: str | None
    texts: tuple[str, ...]
    slots: tuple[tuple[int, str, str, bool], ...]
    markers: tuple[int, ...]
    columns: tuple[str, ...]
    form: str
    values: Callable[[Mapping[str, object]], tuple[object, ...]] | None

    @property
    def has_marker(self) -> bool:
        """True if the examples have a place in this text."""
        return bool(self.markers)

    def fill(self, columns: Mapping[str, object], masked: str | None = None, examples: str = "") -> str:
        """Return the text with its slots filled from ``columns``; the column ``masked`` reads as ``""`` always.

        Raises:
            TemplateError: the sample lacks a column that ``column_token_map`` names.
        """
        _, literal, texts, slots, markers, names, form, values = self
        if literal is not None:
            return literal
        if values is not None and masked not in names and type(columns) is dict:
            try:  # suppress takes as long as the rest
                found = values(columns)
                if Value not in map(type, found):
                    return form % found
            except KeyError:  # a slot without a column is filled below
                pass
        out = list(texts)
        for place, column, written, required in slots:
            if column == masked:
                continue
            if column in columns:
                value = columns[column]
                out[place] = value if type(value) is str else text_of(value)
            elif required:
                what = f"column '{column}' of column_token_map is not in the sample"
                raise TemplateError(what, nearest(column, columns), code="MM603")
            else:
                out[place] = written
        for place in markers:
            out[place] = examples
        return joined_text(out)

    def around_examples(self, columns: Mapping[str, object], masked: str | None = None) -> list[str]:
        """Return the filled texts before, between and after the places of the examples."""
        bounds = (-1, *self.markers, len(self.pieces))
        return [slot_text(self.pieces[a + 1 : b]).fill(columns, masked) for a, b in pairwise(bounds)]


def compile_text(
    text: str,
    *,
    tokens: Mapping[str, str] | None = None,
    ice_token: str | None = None,
    sep_token: str | None = None,
) -> SlotText:
    """Return ``text`` compiled: its braces and the literal ``tokens`` (token to column) become slots.

    ``ice_token`` marks the place of the examples; ``sep_token`` is removed. Tokens are found first, also inside braces,
    and braces in what is left between them. The text is read from the left; where two tokens begin at one place, the
    longer one counts.
    """
    literals: dict[str, Piece] = {t: Slot(c, t, required=True) for t, c in (tokens or {}).items()}
    if sep_token:
        literals[sep_token] = ""
    if ice_token:
        literals[ice_token] = Marker(ice_token)
    words = re.compile("|".join(re.escape(t) for t in sorted(literals, key=len, reverse=True)) or "(?!)")
    pieces = _joined(_split([text], words, lambda match: literals[match.group()]))
    return slot_text(_joined(_split(pieces, _SLOT, lambda match: Slot(match.group(1), match.group()))))


def slot_text(pieces: Iterable[Piece]) -> SlotText:
    """Return compiled pieces as a text."""
    kept = tuple(pieces)
    texts = tuple([p if isinstance(p, str) else "" for p in kept])
    slots = tuple([(place, *piece) for place, piece in enumerate(kept) if isinstance(piece, Slot)])
    markers = tuple([place for place, piece in enumerate(kept) if isinstance(piece, Marker)])
    columns = tuple([column for _, column, _, _ in slots])
    form = "".join([p.replace("%", "%%") if isinstance(p, str) else "%s" for p in kept])
    values = itemgetter(*columns) if len(columns) > 1 and not markers else None
    return SlotText(kept, None if slots or markers else "".join(texts), texts, slots, markers, columns, form, values)


def _split(pieces: Iterable[Piece], pattern: Pattern[str], piece_of: Callable[[Match[str]], Piece]) -> Iterable[Piece]:
    """Yield the pieces, in each string of which ``piece_of`` replaces what the pattern finds."""
    for piece in pieces:
        position = 0
        for match in pattern.finditer(piece) if isinstance(piece, str) else ():
            yield match.string[position : match.start()]
            position = match.end()
            yield piece_of(match)
        yield piece[position:] if isinstance(piece, str) else piece


def _joined(pieces: Iterable[Piece]) -> Iterable[Piece]:
    held = ""
    for piece in pieces:
        if isinstance(piece, str):
            held += piece
            continue
        if held:
            yield held
            held = ""
        yield piece
    if held:
        yield held
