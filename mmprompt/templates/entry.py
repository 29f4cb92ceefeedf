"""A sample as a template sees it: its columns, and which of them are tagged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mmprompt.errors import TagError, TemplateError
from mmprompt.segments import Segment, begins_tagged, scan, structure_segments

CONTENT = "content"
"""The column that is tagged by convention."""


class Entry:
    """The columns of one sample and the rule for which of them are tagged.

    ``scanned`` is False for formats that carry structure: a tag in their text is text. ``tagged`` names the tagged
    columns beside ``content``; None leaves it to the value (it begins with a start tag). ``list_cells`` is True where
    a list can only be written as text (CSV).
    """

    __slots__ = ("_segments", "columns", "list_cells", "scanned", "tagged")

    def __init__(
        self,
        columns: Mapping[str, object],
        *,
        scanned: bool = True,
        tagged: Iterable[str] | None = None,
        list_cells: bool = False,
    ) -> None:
        self.columns = columns
        self.scanned = scanned
        self.tagged = None if tagged is None else frozenset(tagged)
        self.list_cells = list_cells
        self._segments: dict[str, list[Segment] | None] = {}

    def masked(self, column: str | None) -> Entry:
        """Return the entry in which ``column`` reads as ``""``."""
        if column is None or column not in self.columns:
            return self
        return Entry({**self.columns, column: ""}, scanned=self.scanned, tagged=self.tagged, list_cells=self.list_cells)

    def segments(self, column: str, *, outright: bool = False) -> list[Segment] | None:
        """Return the segments of a tagged column, or None if the column is absent or not tagged.

        ``outright`` reads a text as tagged whatever the rule says (unless the format is never scanned).

        Raises:
            TagError: the tags do not pair; ``where.column`` and ``where.offset`` are set.
            TemplateError: the value of a tagged column is null.
        """
        if column not in self._segments or outright:
            try:
                self._segments[column] = self._read(column, outright)
            except TagError as error:
                raise error.located(column=column) from None
        return self._segments[column]

    def _read(self, column: str, outright: bool) -> list[Segment] | None:
        value = self.columns.get(column)
        by_rule = outright or column == CONTENT or (self.tagged is not None and column in self.tagged)
        if value is None:
            if by_rule and column in self.columns:
                raise TemplateError(
                    f"column '{column}' is null, and it feeds the message", "give it a value, or drop the row"
                ).located(column=column)
            return None
        if not isinstance(value, str):
            return structure_segments(value)
        if self.scanned and (by_rule or (self.tagged is None and begins_tagged(value))):
            return [Segment(*span) for span in scan(value)]
        return [Segment("text", value)] if outright else None

    def text(self, column: str) -> str:
        """Return what a tagged column reads as in ordinary text: its text segments joined.

        Raises:
            TemplateError: the column holds media, which text cannot carry.
        """
        segments = self.segments(column) or []
        media = next((s for s in segments if s.modality != "text"), None)
        if media is not None:
            raise TemplateError(
                f"column '{column}' holds {media.modality} and is used in a text",
                "use it in prompt_mm, or a column without media",
            ).located(column=column, offset=media.start)
        return "".join([str(s.value) for s in segments])


def entry_of(entry: Mapping[str, object] | Entry) -> Entry:
    """Return ``entry`` as an Entry; a plain mapping is scanned for tags.

    Raises:
        TemplateError: ``entry`` is neither.
    """
    if isinstance(entry, Entry):
        return entry
    if not isinstance(entry, Mapping):
        raise TemplateError(f"a sample is a mapping of column to value, not {type(entry).__name__}", "give a dict")
    return Entry(entry)
