"""A sample as a template sees it: its columns, which of them are tagged, and which one is hidden."""

from __future__ import annotations

from collections.abc import Container, Mapping

from mmprompt.datasets.media_columns import parts_of_value
from mmprompt.errors import TagError, TemplateError
from mmprompt.messages import MediaRef, Part, TextPart, joined_text, text_of
from mmprompt.segments import Segment, begins_tagged, scan

CONTENT = "content"
"""The column that is tagged by convention."""

CONTENT_SLOTS = ("question", "image", "audio", "video")
"""Names by which templates and configs refer to the text and media of ``content``."""

_new = tuple.__new__  # half the time of the class, and this runs for every segment


def held_by_content(name: str, columns: Container[str]) -> bool:
    """Return True if ``name`` refers to the text or media of ``content`` in a row with these ``columns``."""
    return name in CONTENT_SLOTS and CONTENT in columns


class SampleView:
    """The columns of one sample, with what templates need to know about them. One thread uses it, for one sample.

    ``raw`` has the columns as they are. ``scanned`` is False for formats that carry structure: a tag in their text is
    text. ``tagged`` names the tagged columns beside ``content``; with None a column is tagged if its value begins with
    a start tag. ``list_cells`` is True where a list can only be written as text (CSV). The column ``hidden`` reads as
    ``""``. The column ``outright`` is tagged because the template names it; its text is still read for tags only if
    ``scanned``.
    """

    __slots__ = ("_segments", "_visible", "hidden", "list_cells", "outright", "raw", "scanned", "tagged")

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
        self.outright = outright
        self._visible: Mapping[str, object] | None = None
        self._segments: dict[str, list[Segment] | None] = {}

    @property
    def columns(self) -> Mapping[str, object]:
        """The columns, in which the hidden one reads as ``""``."""
        if self._visible is None:
            hidden = self.hidden
            self._visible = self.raw if hidden is None else {**self.raw, hidden: ""}
        return self._visible

    def with_columns(self, columns: Mapping[str, object]) -> SampleView:
        """Return the view in which these columns read as given."""
        return SampleView(
            {**self.raw, **columns},
            scanned=self.scanned,
            tagged=self.tagged,
            list_cells=self.list_cells,
            hidden=self.hidden,
            outright=self.outright,
        )

    def segments(self, column: str) -> list[Segment] | None:
        """Return the segments of a tagged column; None if the sample lacks the column or the column is not tagged.

        The value of a media segment is its source, or the ``MediaRef`` or ``MediaPart`` that the column holds.

        Raises:
            TagError: the tags do not pair; ``where.column`` and ``where.offset`` are set.
            TemplateError: the value of a tagged column is null, or of a type that cannot be sent.
        """
        if column not in self._segments:
            try:
                self._segments[column] = self._read(column)
            except TagError as error:
                raise error.located(column=column) from None
        return self._segments[column]

    def parts(self, column: str) -> list[Part]:
        """Return a tagged column as content parts; parts that the column holds keep all their keys."""
        value = self.raw[column]
        own = None if isinstance(value, str) else parts_of_value(value)
        if own is not None:
            return own
        return [
            TextPart(s.value) if s.modality == "text" else MediaRef(s.modality, s.value)
            for s in self.segments(column) or ()
        ]

    def tagged_by_rule(self, column: str) -> bool:
        """Return True for a column that is tagged whatever it holds: ``content``, or named by task or template."""
        return column in (CONTENT, self.outright) or (self.tagged is not None and column in self.tagged)

    def _read(self, column: str) -> list[Segment] | None:
        if column not in self.raw or column == self.hidden:
            return None
        value = self.raw[column]
        by_rule = self.tagged_by_rule(column)
        if isinstance(value, str):
            if self.scanned and (by_rule or (self.tagged is None and begins_tagged(value))):
                return [_new(Segment, span) for span in scan(value)]
            return [Segment("text", value)] if column == self.outright else None
        if by_rule and value is None:
            raise null_column(column)
        parts = parts_of_value(value, media=by_rule)
        if parts is not None:
            return [_segment(part) for part in parts]
        if not by_rule:
            return None
        if isinstance(value, (int, float)):
            return [Segment("text", text_of(value))]
        raise TemplateError(
            f"column '{column}' holds {type(value).__name__}",
            "give text, tagged or not, or a list of content parts",
            code="MM007",
        ).located(column=column)

    def text(self, column: str) -> str:
        """Return what ordinary text shows of a tagged column: its text segments, joined.

        Raises:
            TemplateError: the column holds media, which text cannot carry.
        """
        segments = self.segments(column) or []
        media = next((s for s in segments if s.modality != "text"), None)
        if media is not None:
            raise TemplateError(
                f"column '{column}' holds {media.modality} and is used in a text",
                "use it in prompt_mm, or use a column without media",
            ).located(column=column, offset=self.offset(column, media))
        return joined_text([text_of(s.value) for s in segments])

    def offset(self, column: str, segment: Segment) -> int | None:
        """Return where a segment begins in the text of its column; None if the column does not hold text."""
        return segment.start if isinstance(self.raw.get(column), str) else None


def _segment(part: Part) -> Segment:
    if isinstance(part, TextPart):
        return Segment("text", part.text)
    plain = isinstance(part, MediaRef) and not (part.form or part.options or part.extra)
    return Segment(part.modality, part.source if plain and isinstance(part, MediaRef) else part)


def view_of(
    sample: Mapping[str, object] | SampleView, hidden: str | None = None, outright: str | None = None
) -> SampleView:
    """Return ``sample`` as a view that hides the column ``hidden`` and treats ``outright`` as tagged.

    A plain mapping is scanned for tags.
    """
    if hidden is not None and not isinstance(hidden, str):
        raise TemplateError(f"the output column is {type(hidden).__name__}", "give the name of a column")
    if not isinstance(sample, SampleView):
        if not isinstance(sample, Mapping):
            raise TemplateError(f"a sample is a mapping of column to value, not {type(sample).__name__}", "give a dict")
        return SampleView(sample, hidden=hidden, outright=outright)
    if hidden is None and outright is None:
        return sample
    return SampleView(
        sample.raw,
        scanned=sample.scanned,
        tagged=sample.tagged,
        list_cells=sample.list_cells,
        hidden=hidden or sample.hidden,
        outright=outright or sample.outright,
    )


def null_column(column: str) -> TemplateError:
    """Return the error for a null in the column that feeds a message."""
    return TemplateError(
        f"column '{column}' is null, and it feeds the message", "give it a value, or drop the row", code="MM604"
    ).located(column=column)
