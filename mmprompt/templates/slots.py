"""Text with slots, compiled once and filled in one pass.

``{name}`` is a slot if the sample has a column of exactly that name; otherwise it stays as it is, braces and all. A
value is put in last and never looked at again, so ``{answer}`` inside a question stays eight characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Union

_SLOT = r"\{([^{}]*)\}"


class Slot(NamedTuple):
    """A place for the value of ``column``; ``written`` stands there if the sample has no such column."""

    column: str
    written: str
    required: bool = False


class Marker(NamedTuple):
    """The place of the in-context examples in a text."""

    token: str


Piece = Union[str, Slot, Marker]


class SlotText(NamedTuple):
    """A compiled text: its pieces, with no two strings side by side; ``literal`` is the text if it has no slots.

    ``texts`` are the pieces with ``""`` in place of the slots; ``slots`` and ``markers`` say where these are.
    """

    pieces: tuple[Piece, ...]
    literal: str | None
    texts: tuple[str, ...]
    slots: tuple[tuple[int, str, str, bool], ...]
    markers: tuple[int, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names in braces, in order; whether they are slots depends on the sample."""
        return tuple([column for _, column, _, _ in self.slots])

    @property
    def has_marker(self) -> bool:
        """Whether the examples have a place in this text."""
        return bool(self.markers)

    def fill(self, columns: Mapping[str, object], masked: str | None = None, examples: str = "") -> str:
        """Return the text with its slots filled from ``columns``; ``masked`` is a column that reads as ``""``.

        Raises:
            KeyError: a token of ``column_token_map`` whose column the sample lacks.
        """
        _, literal, texts, slots, markers = self
        if literal is not None:
            return literal
        out = list(texts)
        for place, column, written, required in slots:
            if column in columns:
                if column != masked:
                    value = columns[column]
                    out[place] = value if type(value) is str else str(value)
            elif required:
                raise KeyError(column)
            else:
                out[place] = written
        for place in markers:
            out[place] = examples
        return "".join(out)

    def split_at(self, is_here: Callable[[Piece], bool]) -> list[SlotText]:
        """Return the texts between the pieces for which ``is_here`` holds."""
        parts: list[list[Piece]] = [[]]
        for piece in self.pieces:
            if is_here(piece):
                parts.append([])
            else:
                parts[-1].append(piece)
        return [slot_text(p) for p in parts]


def compile_text(
    text: str,
    *,
    tokens: Mapping[str, str] | None = None,
    ice_token: str | None = None,
    sep_token: str | None = None,
) -> SlotText:
    """Compile ``text``: braces, the literal ``tokens`` (token to column), the place of examples, and ``sep_token``.

    ``sep_token`` is left out. The first match from the left wins; at one place a longer token comes first.
    """
    literals: dict[str, Piece | None] = {t: Slot(c, t, required=True) for t, c in (tokens or {}).items()}
    if sep_token:
        literals[sep_token] = None
    if ice_token:
        literals[ice_token] = Marker(ice_token)
    return slot_text(_joined(_pieces(text, literals)))


def slot_text(pieces: Iterable[Piece]) -> SlotText:
    """Return compiled pieces as a text."""
    kept = tuple(pieces)
    texts = tuple([p if isinstance(p, str) else "" for p in kept])
    slots = tuple([(place, *piece) for place, piece in enumerate(kept) if isinstance(piece, Slot)])
    markers = tuple([place for place, piece in enumerate(kept) if isinstance(piece, Marker)])
    return SlotText(kept, None if slots or markers else "".join(texts), texts, slots, markers)


def _pieces(text: str, literals: Mapping[str, Piece | None]) -> Iterable[Piece]:
    words = "|".join(re.escape(t) for t in sorted(literals, key=len, reverse=True))
    pattern = re.compile(f"({words})|{_SLOT}" if words else f"(?!)()|{_SLOT}")
    position = 0
    for match in pattern.finditer(text):
        yield text[position : match.start()]
        position = match.end()
        if match.group(1) is None:
            yield Slot(match.group(2), match.group())
        elif (piece := literals[match.group(1)]) is not None:
            yield piece
    yield text[position:]


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
