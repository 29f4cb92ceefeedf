"""``MMPromptTemplate``: dialogues whose roles say content parts, filled from tagged columns.

A round item has ``prompt_mm``, modality to content part skeleton. One part is made per segment of the tagged column
that feeds the item, in the order of the sample; without tags, a slot that names a plain column takes its value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mmprompt.errors import TemplateError, shown
from mmprompt.templates.dialogue import Form, Labels
from mmprompt.templates.role_parts import ContentItem
from mmprompt.templates.role_text import Speech, TextSpeech
from mmprompt.templates.sample_view import SampleView
from mmprompt.templates.slots import SlotText
from mmprompt.templates.text import PromptTemplate

ORDERS = ("sample", "template")


class MixedText(TextSpeech):
    """Ordinary text of a multimodal template, where a tagged column reads as its text segments joined."""

    __slots__ = ()

    def columns(self, entry: SampleView) -> Mapping[str, object]:
        """Return the columns as ordinary text sees them; a column that holds media is an error."""
        try:
            tagged = {c: entry.text(c) for c in self.text.columns if entry.segments(c) is not None}
        except TemplateError as error:
            raise error.located(template=self._place) from None
        return {**entry.raw, **tagged} if tagged else entry.raw


class MMPromptTemplate(PromptTemplate):
    """A multimodal dialogue template, compiled and validated at construction; immutable.

    Args:
        template: a dialogue of ``begin``, ``round`` and ``end`` (or labels of such dialogues), whose role dicts have
            ``prompt_mm``, modality (``text``, ``image``, ``audio``, ``video``, or ``mm_url`` for any medium) to
            content part skeleton, or an ordinary ``prompt``.
        ice_token: the literal text whose place the in-context examples take.
        sep_token: a literal text that is removed wherever it would be rendered.
        column_token_map: column to the literal token that stands for its value.
        column: the tagged column that feeds every item; by default the tagged columns that the item's slots name,
            else a tagged ``content``.
        order: ``"sample"`` keeps the order of the segments, ``"template"`` groups them by the keys of ``prompt_mm``.
        repeat_text: whether the text around the slot is repeated for each text segment, or stands once around all.

    Source: AISBench, Prompt Template, on multimodal templates.

    Raises:
        TemplateError: with the place in the template as ``where.template``.
    """

    def __init__(
        self,
        template: Mapping[Any, Any],
        ice_token: str | None = None,
        sep_token: str | None = None,
        column_token_map: Mapping[str, str] | None = None,
        *,
        column: str | None = None,
        order: str = "sample",
        repeat_text: bool = True,
    ) -> None:
        if order not in ORDERS:
            raise TemplateError(f"unknown order {shown(order)}", "give 'sample' or 'template'")
        self._column = column
        self._order = order
        self._repeat_text = repeat_text
        super().__init__(template, ice_token, sep_token, column_token_map)

    def _compile(self) -> Form:
        form = super()._compile()
        forms = list(form.forms.values()) if isinstance(form, Labels) else [form]
        if any(isinstance(f, SlotText) for f in forms):
            raise TemplateError("a multimodal template is a dialogue, not a string", "give a dict with 'round'")
        return form

    def _speech(self, item: Mapping[str, Any], place: str) -> Speech | None:
        if "prompt_mm" not in item:
            return super()._speech(item, place)
        if "prompt" in item:
            raise TemplateError("prompt and prompt_mm in one role dict", "keep one of them").located(template=place)
        return ContentItem(
            item["prompt_mm"],
            self._tokens,
            f"{place}.prompt_mm",
            column=self._column,
            by_key=self._order == "template",
            repeat_text=self._repeat_text,
        )

    def _loose(self, text: str, place: str) -> TextSpeech:
        return MixedText(self._tokens.compile(text), place)

    def _entry(self, entry: Mapping[str, object] | SampleView, hidden: str | None = None) -> SampleView:
        return super()._entry(entry, hidden).tagging(self._column)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as the arguments."""
        keywords = {"column": self._column, "order": self._order, "repeat_text": self._repeat_text}
        return (_rebuilt, (type(self), super().__reduce__()[1], keywords))


def _rebuilt(cls: type[MMPromptTemplate], arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> MMPromptTemplate:
    return cls(*arguments, **keywords)
