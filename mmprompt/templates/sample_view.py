"""A sample as a template sees it: its columns, and which of them are tagged."""

from __future__ import annotations

from collections.abc import Container, Mapping

from mmprompt.datasets.media_columns import parts_of_value
from mmprompt.errors import SourceError, TagError, TemplateError
from mmprompt.messages import MediaRef, Part, TextPart
from mmprompt.segments import Segment, begins_tagged, scan

CONTENT = "content"
"""The column that is tagged by convention."""

CONTENT_SLOTS = ("question", "image", "audio", "video")
"""What templates call the text and the media of ``content``, and configs list beside true columns."""


def held_by_content(name: str, columns: Container[str]) -> bool:
    """Tell whether ``name``, where it is no column, is one of ``CONTENT_SLOTS``, for a row with these ``columns``."""
    return name in CONTENT_SLOTS and CONTENT in columns


class SampleView:
    """The columns of one sample and the rule for which of them are tagged. Made anew for each sample; not shared.

    ``scanned`` is False for formats that carry structure: a tag in their text is text. ``tagged`` names the tagged
    columns beside ``content``; None leaves it to the value (it begins with a start tag). ``list_cells`` is True where
    a list can only be written as text (CSV). ``hidden`` is the column that reads as ``""``.
    """

    __slots__ = ("_outright", "_segments", "_visible", "hidden", "list_cells", "raw", "scanned", "tagged")

    def __init__(
        self,
        columns: Mapping[str, object],
        *,
        scanned: bool = True,
        tagged: frozenset[str] | None = None,
        list_cells: bool = False,
        hidden: str | None = None,
        outright: str | None = None,
    ) -> None:
        self.raw = columns
        self.scanned = scanned
        self.tagged = tagged
        self.list_cells = list_cells
        self.hidden = hidden
        self._outright = outright
        self._visible: Mapping[str, object] | None = None
        self._segments: dict[str, list[Segment] | None] | None = None

    @property
    def columns(self) -> Mapping[str, object]:
        """The columns, in which the hidden one reads as ``""``; ``raw`` has it as it is."""
        if self._visible is None:
            masks = self.hidden is not None and self.hidden in self.raw
            self._visible = {**self.raw, self.hidden: ""} if masks and self.hidden is not None else self.raw
        return self._visible

    def masked(self, column: str | None) -> SampleView:
        """Return the entry in which ``column`` reads as ``""``.

        Raises:
            TemplateError: ``column`` is no name.
        """
        if column is None:
            return self
        if not isinstance(column, str):
            raise TemplateError(f"the output column is {type(column).__name__}", "give the name of a column")
        return self._with(self.raw, hidden=column)

    def tagging(self, column: str | None) -> SampleView:
        """Return the entry in which ``column`` is tagged whatever the rule says (its text only if scanned)."""
        return self if column is None else self._with(self.raw, outright=column)

    def with_columns(self, columns: Mapping[str, object]) -> SampleView:
        """Return the entry in which these columns read as given."""
        return self._with({**self.raw, **columns})

    def _with(
        self, columns: Mapping[str, object], *, hidden: str | None = None, outright: str | None = None
    ) -> SampleView:
        return SampleView(
            columns,
            scanned=self.scanned,
            tagged=self.tagged,
            list_cells=self.list_cells,
            hidden=hidden or self.hidden,
            outright=outright or self._outright,
        )

    def segments(self, column: str) -> list[Segment] | None:
        """Return the segments of a tagged column, or None if the column is absent or not tagged.

        The value of a media segment is its source, or the ``MediaRef`` or ``MediaPart`` that the column held.

        Raises:
            TagError: the tags do not pair; ``where.column`` and ``where.offset`` are set.
            TemplateError: the value of a tagged column is null, or nothing that can be sent.
        """
        if self._segments is None:
            self._segments = {}
        if column not in self._segments:
            try:
                self._segments[column] = self._read(column)
            except TagError as error:
                raise error.located(column=column) from None
        return self._segments[column]

    def parts(self, column: str) -> list[Part]:
        """Return a tagged column as content parts, with all that its own parts carry."""
        value = self.raw[column]
        own = None if isinstance(value, str) else parts_of_value(value)
        if own is not None:
            return own
        return [
            TextPart(s.value) if s.modality == "text" else MediaRef(s.modality, s.value)
            for s in self.segments(column) or ()
        ]

    def tagged_by_rule(self, column: str) -> bool:
        """Tell whether a column is tagged whatever its value: ``content``, or named by the task or the template."""
        named = self.tagged is not None and column in self.tagged
        return named or column in (CONTENT, self._outright)

    def _read(self, column: str) -> list[Segment] | None:
        if column not in self.raw or column == self.hidden:
            return None
        value = self.raw[column]
        outright = column == self._outright
        by_rule = self.tagged_by_rule(column)
        if isinstance(value, str):
            if self.scanned and (by_rule or (self.tagged is None and begins_tagged(value))):
                return [Segment(*span) for span in scan(value)]
            return [Segment("text", value)] if outright else None
        if by_rule and value is None:
            raise null_column(column)
        parts = parts_of_value(value, media=by_rule)
        if parts is not None:
            return [_segment(part) for part in parts]
        if not by_rule:
            return None
        if isinstance(value, (int, float)):
            return [Segment("text", str(value))]
        raise TemplateError(
            f"column '{column}' holds {type(value).__name__}", "give text, tagged or not, or a list of content parts"
        ).located(column=column)

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
            ).located(column=column, offset=self.offset(column, media))
        return "".join([str(s.value) for s in segments])

    def offset(self, column: str, segment: Segment) -> int | None:
        """Return where a segment stands in the text of its column; None if the column holds no text."""
        return segment.start if isinstance(self.raw.get(column), str) else None


def _segment(part: Part) -> Segment:
    if isinstance(part, TextPart):
        return Segment("text", part.text)
    plain = isinstance(part, MediaRef) and not (part.form or part.options or part.extra)
    return Segment(part.modality, part.source if plain and isinstance(part, MediaRef) else part)


def entry_of(entry: Mapping[str, object] | SampleView, hidden: str | None = None) -> SampleView:
    """Return ``entry`` as an Entry in which ``hidden`` reads as ``""``; a plain mapping is scanned for tags.

    Raises:
        TemplateError: ``entry`` is neither, or ``hidden`` is no name.
    """
    if isinstance(entry, SampleView):
        return entry.masked(hidden)
    if not isinstance(entry, Mapping):
        raise TemplateError(f"a sample is a mapping of column to value, not {type(entry).__name__}", "give a dict")
    return (
        SampleView(entry, hidden=hidden)
        if hidden is None or isinstance(hidden, str)
        else SampleView(entry).masked(hidden)
    )


def null_column(column: str) -> TemplateError:
    """Return the error of a null in the column that feeds a message."""
    return TemplateError(
        f"column '{column}' is null, and it feeds the message", "give it a value, or drop the row"
    ).located(column=column)


def check_source(source: object, column: str) -> None:
    """Refuse a medium that is null or blank.

    Raises:
        TemplateError: it is null.
        SourceError: it is blank text.
    """
    if source is None:
        raise null_column(column)
    if isinstance(source, str) and not source.strip():
        raise SourceError(f"column '{column}' names no medium: it is blank", "name one, or drop the row").located(
            column=column
        )
