"""The columns that a task sends, and the rows whose media columns hold no media."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from mmprompt.datasets.media_columns import media_column, media_of_cell
from mmprompt.errors import names_in_short, nearest
from mmprompt.templates.sample_view import CONTENT, CONTENT_SLOTS

Groups = Mapping[str, Sequence[str]]
"""Media columns by name; numbered ones, of which a row need not fill each, stand together"""


class SentColumns(NamedTuple):
    """The columns that a task sends.

    ``mapped`` are those that ``--map`` names, column to modality. ``output_column`` is the answer's. With
    ``list_cells`` a cell may be a list written as text. ``shows_answer`` is False where a meta template follows.
    """

    mapped: Mapping[str, str]
    output_column: str
    list_cells: bool
    shows_answer: bool

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

    def lacks_media(self, columns: Mapping[str, object], media: Groups) -> bool:
        """Return True if one of the media columns of a row holds nothing."""
        return any(
            not any(media_of_cell(columns[name], cells=self.list_cells) for name in names) for names in media.values()
        )


def empty_note(
    shapes: Sequence[tuple[Sequence[str], int, Groups, int]], slots: Sequence[str] | None
) -> tuple[int, str, str] | None:
    """Return how many rows lack media, the text of the note and its hint; None if every row has media.

    Each of ``shapes`` has the columns of rows, their number, their media columns, and how many lack media. A column
    is missing if other rows have it, or if one of ``slots``, other than the modalities, names it.
    """
    present = {name for _, _, media, _ in shapes for name in media}
    strange = [n for n in slots or () if n not in present and n not in (*CONTENT_SLOTS, "mm_url")]
    asked = sorted([*present, *strange])
    rows = sum(count if len(media) < len(asked) else empty for _, count, media, empty in shapes)
    if not rows:
        return None
    fact = f"a media column ({names_in_short(map(repr, asked))}) is missing, null or blank, so it gives no media"
    return rows, fact, nearest(strange[0], shapes[0][0]) if strange else "fill it where a row should have media"
